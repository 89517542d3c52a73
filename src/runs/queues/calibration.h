// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "runs/queues/start_forecast.h"

#include <optional>
#include <vector>

/// Forecasts of starts, compared with the starts: how far simulations of the queue were right.
/// Pure.
namespace gpuq {

/// The parts of the simulated starts that p50 and p90 are. Each start before its forecast lowers
/// them a little, each one after it raises them, so that in the long run half and nine tenths of
/// the jobs start by their forecasts, however the queue differs from the simulation.
struct Calibration {
    struct Check {
        JobId job;
        Time p50;
        Time p90;
        std::optional<Time> started; ///< as far as seen
        bool has_p50 = false;        ///< p50 has passed and was compared
        bool operator==(const Check&) const = default;
    };

    double p50 = 0.5;
    double p90 = 0.9;
    std::vector<Check> checks; ///< whose p90 has not passed
    std::optional<Time> noted_at;
    bool operator==(const Calibration&) const = default;
};

/// Compares the checks whose times have passed. `jobs`: all that Slurm shows. A check of a job that
/// has left the queue unseen is dropped.
void compare_starts(Calibration& calibration, const std::vector<Job>& jobs, Time now);

/// Notes some of the forecasts for comparison, at most once an hour.
void note_forecasts(Calibration& calibration, const StartForecasts& forecasts, Time now);

} // namespace gpuq
