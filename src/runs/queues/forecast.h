// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/queues/run_times.h"
#include "runs/queues/start_forecast.h"

#include <set>
#include <vector>

/// When a pending job will probably start: jobs rarely use all of their time limits. Pure.
namespace gpuq {

/// Forecasts the starts of the pending jobs in `wanted` that could start (could_start), from
/// simulations of the queue with run times drawn from `times`: of running jobs, given how long they
/// have run. The same input yields the same forecasts. Not covered: jobs that are submitted later
/// and go first, changes of priorities, reservations that have not begun. Unknown under the same
/// conditions as expected_starts(), and if Slurm does not show all tasks of an array.
StartForecasts forecast_starts(const std::set<JobId>& wanted, const AllJobs& all,
                               const Inventory& inventory, const RunTimes& times, Time now);

/// A job that is not submitted, as the last of all pending ones.
Job as_last(Job imagined);

/// The forecasts for jobs that are not submitted, each after all pending ones and the others before
/// it (as_last). Only their partitions, sizes and time limits count.
std::vector<StartForecast> forecast_imagined(const std::vector<Job>& imagined, const AllJobs& all,
                                             const Inventory& inventory, const RunTimes& times,
                                             Time now);
/// The same for one job.
StartForecast forecast_start(const Job& imagined, const AllJobs& all, const Inventory& inventory,
                             const RunTimes& times, Time now);

} // namespace gpuq
