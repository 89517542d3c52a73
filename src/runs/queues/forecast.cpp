// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/forecast.h"

#include "runs/queues/eligibility.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/queue_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace gpuq {
namespace {

constexpr std::uint64_t k_seed = 20'261'129;
/// A long queue needs fewer simulations: the run times of many jobs average out.
constexpr std::size_t k_simulations = 50;
constexpr std::size_t k_fewest_simulations = 10;
constexpr std::size_t k_pending_jobs = 100'000; ///< in all simulations together
/// A job that has reached its limit is about to end.
constexpr double k_beyond_limit = 30;

using Samples = std::map<JobId, std::vector<double>>; ///< starts, in seconds from now

double remaining(const QueueCourse::Running& job, const UseOfLimits& use, std::mt19937_64& random)
{
    if (job.limit == QueueCourse::k_never) {
        return QueueCourse::k_never;
    }
    const double left = job.limit - job.elapsed;
    if (left <= 0) {
        return k_beyond_limit;
    }
    return use.draw(job.kind, job.elapsed / job.limit, random) * job.limit - job.elapsed;
}

double duration(const QueueCourse::Pending& job, const UseOfLimits& use, std::mt19937_64& random)
{
    double parts = 0;
    for (int i = 0; i < job.tasks; ++i) {
        parts += use.draw(job.kind, 0, random);
    }
    return parts * job.limit;
}

Samples simulate(QueueCourse& course, const std::map<JobId, std::size_t>& wanted,
                 const RunTimes& times)
{
    std::mt19937_64 random(k_seed);
    Samples samples;
    const auto& running = course.running();
    const auto& pending = course.pending();
    const std::size_t count =
        std::clamp(k_pending_jobs / pending.size(), k_fewest_simulations, k_simulations);
    std::vector<double> left(running.size());
    std::vector<double> durations(pending.size());
    for (std::size_t i = 0; i < count; ++i) {
        const UseOfLimits use(times, random);
        std::transform(running.begin(), running.end(), left.begin(),
                       [&](const auto& job) { return remaining(job, use, random); });
        std::transform(pending.begin(), pending.end(), durations.begin(),
                       [&](const auto& job) { return duration(job, use, random); });
        const std::vector<double> starts = course.run(left, durations);
        for (const auto& [id, index] : wanted) {
            samples[id].push_back(starts[index]);
        }
    }
    return samples;
}

std::optional<Time> time_of(double start, Time now)
{
    constexpr double k_longest = 100.0 * 365 * 24 * 3600;
    if (start > k_longest) {
        return std::nullopt;
    }
    return now + std::chrono::seconds(std::llround(std::ceil(start)));
}

/// The time by which so large a part of the simulations has started the job, between two of them in
/// proportion.
double start_by(double part, const std::vector<double>& ascending)
{
    const double rank = std::clamp(part * static_cast<double>(ascending.size()) - 0.5, 0.0,
                                   static_cast<double>(ascending.size() - 1));
    const auto below = static_cast<std::size_t>(rank);
    const double rest = rank - static_cast<double>(below);
    if (rest == 0 || ascending[below] == ascending[below + 1]) { // both may be infinite
        return ascending[below];
    }
    return ascending[below] + rest * (ascending[below + 1] - ascending[below]);
}

StartForecast summary(std::vector<double> starts, const Calibration& calibration, Time now)
{
    std::sort(starts.begin(), starts.end());
    const double p90 = std::max(calibration.p50, calibration.p90);
    StartForecast forecast{time_of(start_by(calibration.p50, starts), now),
                           time_of(start_by(p90, starts), now), ""};
    if (!forecast.p50) {
        forecast.unknown = "jobs without a time limit are in its way";
    }
    return forecast;
}

StartForecast unknown(std::string why)
{
    return {std::nullopt, std::nullopt, std::move(why)};
}

/// The number of an array, or of a job.
std::string called(const Job& job)
{
    return job.called.empty() ? std::to_string(job.id.value)
                              : job.called.substr(0, job.called.find('_'));
}

/// Why there is no forecast for a pending job, or an empty text.
std::string obstacle_to(QueueCourse& course, std::size_t index, const AllJobs& all)
{
    const QueueCourse::Pending& pending = course.pending()[index];
    std::string why = obstacle(*pending.job, all);
    if (!why.empty()) {
        return why;
    }
    if (!pending.can_start) {
        return "the nodes that are up in its queue lack the resources it asks for";
    }
    if (const auto& incomplete = course.incomplete(); incomplete && *incomplete < index) {
        return fmt::format("Slurm does not show all tasks of the array {}",
                           called(*course.pending()[*incomplete].job));
    }
    return "";
}

} // namespace

StartForecasts forecast_starts(const std::set<JobId>& wanted, const AllJobs& all,
                               const Inventory& inventory, const RunTimes& times, Time now)
{
    StartForecasts found;
    if (wanted.empty()) {
        return found;
    }
    QueueCourse course(all, inventory, now);
    std::map<JobId, std::size_t> indexes;
    for (std::size_t i = 0; i < course.pending().size(); ++i) {
        const JobId id = course.pending()[i].job->id;
        if (!wanted.contains(id) || indexes.contains(id) || found.contains(id)) {
            continue;
        }
        std::string why = obstacle_to(course, i, all);
        if (why.empty()) {
            course.pending()[i].is_wanted = true;
            indexes.emplace(id, i);
        } else {
            found.emplace(id, unknown(std::move(why)));
        }
    }
    if (!indexes.empty()) {
        for (auto& [id, starts] : simulate(course, indexes, times)) {
            found.emplace(id, summary(std::move(starts), times.calibration, now));
        }
    }
    return found;
}

Job as_last(Job imagined)
{
    imagined.id = JobId{std::numeric_limits<std::uint32_t>::max()};
    imagined.state = JobState::pending;
    imagined.reason = "Priority";
    imagined.priority = 1; // 0: held
    return imagined;
}

std::vector<StartForecast> forecast_imagined(const std::vector<Job>& imagined, const AllJobs& all,
                                             const Inventory& inventory, const RunTimes& times,
                                             Time now)
{
    const bool all_known = std::all_of(all.jobs.begin(), all.jobs.end(), [](const Job& job) {
        return job.priority || !could_start(job);
    });
    if (!all_known) {
        return {imagined.size(), unknown("the priorities of pending jobs are not shown")};
    }
    AllJobs with_them = all;
    std::set<JobId> wanted;
    for (const Job& job : imagined) {
        with_them.jobs.push_back(as_last(job));
        JobId& id = with_them.jobs.back().id;
        id.value -= static_cast<std::uint32_t>(imagined.size() - 1 - wanted.size());
        wanted.insert(id);
    }
    std::vector<StartForecast> found;
    for (auto& [id, forecast] : forecast_starts(wanted, with_them, inventory, times, now)) {
        found.push_back(std::move(forecast));
    }
    return found;
}

StartForecast forecast_start(const Job& imagined, const AllJobs& all, const Inventory& inventory,
                             const RunTimes& times, Time now)
{
    return forecast_imagined({imagined}, all, inventory, times, now).front();
}

} // namespace gpuq
