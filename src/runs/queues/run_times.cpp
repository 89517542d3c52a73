// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/run_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuq {
namespace {

using Seconds = std::chrono::duration<double>;

using Table = RunTimes::Table;
using Tables = decltype(RunTimes::tables);
constexpr std::size_t k_count = RunTimes::k_bounds.size();
/// The general pattern: the part of the jobs that still run at each bound.
constexpr std::array<double, k_count> k_pattern{0.90, 0.82, 0.74, 0.68, 0.61,  0.50,  0.40,
                                                0.33, 0.27, 0.21, 0.17, 0.145, 0.135, 0.13};
/// As if so many jobs of the general pattern, so many with each limit that behave like all jobs,
/// and so many of each kind that behave like those with the same limit, had been observed.
constexpr double k_pattern_jobs = 20;
constexpr double k_common_jobs = 5;
constexpr double k_least_jobs = 1e-3; ///< in any interval, so that each has a rate
/// Similar jobs come in bursts: the rates of a kind differ now from the observed ones. By a factor
/// with a gamma distribution of this shape, which the jobs of the last day narrow, and, since jobs
/// that wait or run are not those, by one whose logarithm has this deviation.
constexpr double k_recent_shape = 1.5;
constexpr double k_bursts = 0.8;
constexpr std::chrono::seconds k_min_job_age{300};
constexpr Seconds k_half_life = std::chrono::hours{14 * 24};
constexpr Seconds k_recent_half_life = std::chrono::hours{24};

double lower_bound(std::size_t interval)
{
    return interval == 0 ? 0 : RunTimes::k_bounds[interval - 1];
}

void add(Table& table, double from, double to, bool ended)
{
    for (std::size_t i = 0; i < k_count; ++i) {
        const double low = std::max(from, lower_bound(i));
        const double high = std::min(to, RunTimes::k_bounds[i]);
        table[i].exposure += std::max(0.0, high - low);
        if (ended && to >= lower_bound(i) && to < RunTimes::k_bounds[i]) {
            table[i].ended += 1;
        }
    }
}

void forget(RunTimes& times, Seconds passed)
{
    const double left = std::exp2(-passed / k_half_life);
    for (Table& table : times.tables) {
        for (RunTimes::Interval& interval : table) {
            interval.ended *= left;
            interval.exposure *= left;
        }
    }
    const double recent = std::exp2(-passed / k_recent_half_life);
    for (RunTimes::Recent& one : times.recent) {
        one.ended *= recent;
        one.expected *= recent;
    }
}

void add_all(Table& sum, const Table& table)
{
    for (std::size_t i = 0; i < k_count; ++i) {
        sum[i].ended += table[i].ended;
        sum[i].exposure += table[i].exposure;
    }
}

/// The table of all kinds together, and of the general pattern.
Table all_kinds(const RunTimes& times)
{
    Table all{};
    double before = 1;
    for (std::size_t i = 0; i < k_count; ++i) {
        const double jobs = k_pattern_jobs * std::exchange(before, k_pattern[i]);
        all[i].ended = jobs - k_pattern_jobs * k_pattern[i];
        all[i].exposure = (RunTimes::k_bounds[i] - lower_bound(i)) * (jobs - all[i].ended / 2);
    }
    for (const Table& table : times.tables) {
        add_all(all, table);
    }
    return all;
}

/// A few jobs with these rates.
Table few_like(const Table& all)
{
    Table few{};
    double jobs = k_common_jobs;
    for (std::size_t i = 0; i < k_count; ++i) {
        const double rate = all[i].ended / all[i].exposure;
        const double width = RunTimes::k_bounds[i] - lower_bound(i);
        few[i].ended = jobs * (1 - std::exp(-rate * width));
        few[i].exposure = few[i].ended / rate;
        jobs = std::max(jobs - few[i].ended, k_least_jobs);
    }
    return few;
}

/// By kind: the observations, and the assumptions for kinds with few of them.
Tables assumed(const RunTimes& times)
{
    Tables tables = times.tables;
    const Table common = few_like(all_kinds(times));
    for (std::size_t limit = 0; limit < tables.size(); limit += RunTimes::k_sizes) {
        Table alike = common;
        for (std::size_t kind = limit; kind < limit + RunTimes::k_sizes; ++kind) {
            add_all(alike, times.tables[kind]);
        }
        const Table few = few_like(alike);
        for (std::size_t kind = limit; kind < limit + RunTimes::k_sizes; ++kind) {
            add_all(tables[kind], few);
        }
    }
    return tables;
}

/// Adds a job that ran from and to these parts of its limit. `assumed`: of its kind.
void add(RunTimes::Recent& recent, const Table& assumed, double from, double to, bool ended)
{
    for (std::size_t i = 0; i < k_count; ++i) {
        const double low = std::max(from, lower_bound(i));
        const double high = std::min(to, RunTimes::k_bounds[i]);
        recent.expected += std::max(0.0, high - low) * assumed[i].ended / assumed[i].exposure;
    }
    recent.ended += ended && to < 1 ? 1 : 0;
}

bool has_ended(const Job& job)
{
    return job.ends_at && (is_over(job.state) || job.state == JobState::completing);
}

/// The greatest time since the end of a job, at most MinJobAge by default: older ones may be kept
/// only by chance.
std::chrono::seconds oldest_end(const std::vector<Job>& jobs, Time now)
{
    std::chrono::seconds oldest{0};
    for (const Job& job : jobs) {
        if (has_ended(job) && *job.ends_at <= now) {
            oldest = std::max(oldest, std::chrono::floor<std::chrono::seconds>(now - *job.ends_at));
        }
    }
    return std::min(oldest, k_min_job_age);
}

} // namespace

RunTimes::Kind RunTimes::kind_of(std::chrono::duration<double> limit, int gpus)
{
    using namespace std::chrono_literals;
    constexpr std::array<std::chrono::minutes, k_limits - 1> k_lengths{10min, 30min, 1h, 2h,
                                                                       4h,    12h,   24h};
    const auto length = static_cast<std::size_t>(
        std::lower_bound(k_lengths.begin(), k_lengths.end(), limit) - k_lengths.begin());
    const std::size_t size = gpus <= 1 ? 0 : gpus <= 3 ? 1 : 2;
    return length * k_sizes + size;
}

double RunTimes::ended() const
{
    double sum = 0;
    for (const Table& table : tables) {
        for (const Interval& interval : table) {
            sum += interval.ended;
        }
    }
    return sum;
}

void observe(RunTimes& times, const std::vector<Job>& jobs, Time now)
{
    times.kept = std::max(times.kept, oldest_end(jobs, now));
    const bool was_set_back = times.until && *times.until > now;
    const Time from = std::max(was_set_back ? now : times.until.value_or(Time{}), now - times.kept);
    if (times.until && !was_set_back) {
        forget(times, now - *times.until);
    }
    const Tables before = assumed(times);
    for (const Job& job : jobs) {
        const Seconds limit = job.walltime.value_or(std::chrono::minutes{0});
        const bool runs = job.state == JobState::running || job.state == JobState::suspended;
        if (limit.count() <= 0 || !job.started_at || !(runs || has_ended(job))) {
            continue;
        }
        const Time end = runs ? now : std::min(*job.ends_at, now);
        if (end > from && end >= *job.started_at) {
            const RunTimes::Kind kind = RunTimes::kind_of(limit, job.gpus);
            const double first = (std::max(from, *job.started_at) - *job.started_at) / limit;
            const double last = (end - *job.started_at) / limit;
            add(times.tables[kind], first, last, !runs);
            add(times.recent[kind], before[kind], first, last, !runs);
        }
    }
    times.until = now;
    compare_starts(times.calibration, jobs, now);
}

UseOfLimits::UseOfLimits(const RunTimes& times, std::mt19937_64& random)
{
    const Tables tables = assumed(times);
    for (std::size_t kind = 0; kind < m_kinds.size(); ++kind) {
        Truth& truth = m_kinds[kind];
        std::gamma_distribution<double> recent(k_recent_shape + times.recent[kind].ended,
                                               1 / (k_recent_shape + times.recent[kind].expected));
        const double burst = std::exp(std::normal_distribution<double>(0, k_bursts)(random));
        const double factor = burst * recent(random);
        for (std::size_t i = 0; i < k_count; ++i) {
            std::gamma_distribution<double> rate(tables[kind][i].ended,
                                                 1 / tables[kind][i].exposure);
            truth.rates[i] = factor * rate(random);
            truth.sums[i + 1] =
                truth.sums[i] + truth.rates[i] * (RunTimes::k_bounds[i] - lower_bound(i));
        }
    }
}

double UseOfLimits::draw(RunTimes::Kind kind, double elapsed, std::mt19937_64& random) const
{
    if (elapsed >= 1) {
        return 1;
    }
    const auto& bounds = RunTimes::k_bounds;
    const auto& [rates, sums] = m_kinds[kind];
    const auto interval = static_cast<std::size_t>(
        std::upper_bound(bounds.begin(), bounds.end(), std::max(0.0, elapsed)) - bounds.begin());
    const double used = sums[interval] + rates[interval] * (elapsed - lower_bound(interval));
    // In (0, 1]: the logarithm is finite.
    const double chance = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
    const double end = used - std::log(chance);
    const auto sum = std::upper_bound(sums.begin() + 1, sums.end(), end);
    if (sum == sums.end()) {
        return 1;
    }
    const auto found = static_cast<std::size_t>(sum - sums.begin()) - 1;
    return std::max(elapsed, lower_bound(found) + (end - sums[found]) / rates[found]);
}

} // namespace gpuq
