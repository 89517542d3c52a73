// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "runs/insight/remedies.h"
#include "runs/queues/forecast.h"
#include "runs/queues/reservations.h"
#include "runs/status.h"

#include <optional>
#include <string>
#include <vector>

/// Text and JSON of `gpuq why`. Pure.
namespace gpuq::cli {

/// The result of `gpuq why`.
struct Why {
    RunStatus run;
    std::optional<int> ahead; ///< for a waiting run: jobs of its queue ahead of it
    std::vector<Advice> advice;
    std::vector<std::string> policy;   ///< the policy's decision on such a run, line by line
    std::vector<std::string> warnings; ///< data that could not be obtained, and why
    std::optional<StartForecast> forecast = {}; ///< for a waiting run, if all jobs are known
    std::vector<ReservedGpus> reserved = {}; ///< nodes of its queues, while it waits or would run
    std::string lacking = {}; ///< resources that it lacks although GPUs are free: `cores`
};

/// Lines for users, not sanitised. For a run that is not waiting: its state, and the command that
/// applies.
std::vector<std::string> why_lines(const Why& why, Time now);

/// For --json.
report::Json::Members why_document(const Why& why, Time now);

} // namespace gpuq::cli
