// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/calibration.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <unordered_map>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr auto k_note_again = 1h;
constexpr std::size_t k_noted_jobs = 4; ///< at once
constexpr std::size_t k_most_checks = 300;
/// How much a start changes the parts: some days pass until they follow a change.
constexpr double k_step_50 = 0.02;
constexpr double k_step_90 = 0.01;

/// Adaptive conformal inference: Gibbs and Candès, NeurIPS 2021.
void adapt(double& part, double target, double step, bool was_right)
{
    part = std::clamp(part + step * (target - (was_right ? 1 : 0)), 0.05, 0.98);
}

/// False if nothing more can be learned from the check.
bool compare(Calibration& calibration, Calibration::Check& check, Time now)
{
    if (!check.has_p50 && check.p50 <= now) {
        check.has_p50 = true;
        adapt(calibration.p50, 0.5, k_step_50, check.started && *check.started <= check.p50);
    }
    if (check.p90 > now) {
        return true;
    }
    adapt(calibration.p90, 0.9, k_step_90, check.started && *check.started <= check.p90);
    return false;
}

} // namespace

void compare_starts(Calibration& calibration, const std::vector<Job>& jobs, Time now)
{
    if (calibration.checks.empty()) {
        return;
    }
    std::unordered_map<std::uint32_t, const Job*> by_id;
    for (const Job& job : jobs) {
        by_id.emplace(job.id.value, &job);
    }
    std::erase_if(calibration.checks, [&](Calibration::Check& check) {
        const auto found = by_id.find(check.job.value);
        const Job* const job = found == by_id.end() ? nullptr : found->second;
        const bool waits = job != nullptr && job->state == JobState::pending;
        if (job != nullptr && !waits && job->started_at && !job->nodes.empty()) {
            check.started = check.started ? check.started : job->started_at;
        }
        const bool is_lost = !waits && !check.started;
        return is_lost || !compare(calibration, check, now);
    });
}

void note_forecasts(Calibration& calibration, const StartForecasts& forecasts, Time now)
{
    const bool was_set_back = calibration.noted_at && *calibration.noted_at > now;
    if (calibration.noted_at && !was_set_back && now - *calibration.noted_at < k_note_again) {
        return;
    }
    std::vector<Calibration::Check> checks;
    for (const auto& [id, forecast] : forecasts) {
        if (forecast.p50 && forecast.p90 && *forecast.p90 > now) {
            checks.push_back({id, *forecast.p50, *forecast.p90, {}});
        }
    }
    if (checks.empty()) {
        return;
    }
    calibration.noted_at = now;
    const std::size_t count = std::min(checks.size(), k_noted_jobs);
    for (std::size_t i = 0; i < count && calibration.checks.size() < k_most_checks; ++i) {
        calibration.checks.push_back(checks[(2 * i + 1) * checks.size() / (2 * count)]);
    }
}

} // namespace gpuq
