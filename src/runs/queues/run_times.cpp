// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/run_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuq {
namespace {

using Seconds = std::chrono::duration<double>;

using Table = RunTimes::Table;
constexpr std::size_t k_count = RunTimes::k_bounds.size();
/// The general pattern: the part of the jobs that still run at each bound.
constexpr std::array<double, k_count> k_pattern{0.90, 0.82, 0.74, 0.68, 0.61,  0.50,  0.40,
                                                0.33, 0.27, 0.21, 0.17, 0.145, 0.135, 0.13};
/// As if so many jobs of the general pattern, and so many of each kind that behave like those of
/// all kinds, had been observed.
constexpr double k_pattern_jobs = 20;
constexpr double k_common_jobs = 5;
/// Similar jobs come in bursts, and a queue is likeliest while jobs run longer than usual: the
/// logarithms of how far the rates of a kind differ now from the observed ones, and of the mean.
/// Chosen with weeks 2 to 5 of tests/bench/forecast, which measures the others; the calibration
/// corrects the error that remains.
constexpr double k_bursts = 0.8;
constexpr double k_longer = 0.5;
constexpr std::chrono::seconds k_min_job_age{300};
constexpr Seconds k_half_life = std::chrono::hours{14 * 24};

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
        for (const Table& table : times.tables) {
            all[i].ended += table[i].ended;
            all[i].exposure += table[i].exposure;
        }
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
        jobs -= few[i].ended;
    }
    return few;
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
    const std::size_t length = limit <= 1h ? 0 : limit <= 4h ? 1 : limit <= 12h ? 2 : 3;
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
    for (const Job& job : jobs) {
        const Seconds limit = job.walltime.value_or(std::chrono::minutes{0});
        const bool runs = job.state == JobState::running || job.state == JobState::suspended;
        if (limit.count() <= 0 || !job.started_at || !(runs || has_ended(job))) {
            continue;
        }
        const Time end = runs ? now : std::min(*job.ends_at, now);
        if (end > from && end >= *job.started_at) {
            add(times.tables[RunTimes::kind_of(limit, job.gpus)],
                (std::max(from, *job.started_at) - *job.started_at) / limit,
                (end - *job.started_at) / limit, !runs);
        }
    }
    times.until = now;
    compare_starts(times.calibration, jobs, now);
}

UseOfLimits::UseOfLimits(const RunTimes& times, std::mt19937_64& random)
{
    const Table few = few_like(all_kinds(times));
    for (std::size_t kind = 0; kind < m_kinds.size(); ++kind) {
        Truth& truth = m_kinds[kind];
        const double burst =
            std::exp(std::normal_distribution<double>(-k_longer, k_bursts)(random));
        for (std::size_t i = 0; i < k_count; ++i) {
            const RunTimes::Interval& seen = times.tables[kind][i];
            std::gamma_distribution<double> rate(few[i].ended + seen.ended,
                                                 1 / (few[i].exposure + seen.exposure));
            truth.rates[i] = burst * rate(random);
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
