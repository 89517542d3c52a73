// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/code_text.h"
#include "cli/render/training_text.h"
#include "report/json.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/insight/samples.h"
#include "runs/queues/start_forecast.h"
#include "runs/records/journal.h"
#include "runs/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Text and JSON of one run in full. Pure.
namespace gpuq::cli {

/// The result of `gpuq show`.
struct WholeRun {
    RunStatus status;
    std::vector<Event> journal;
    std::string directory; ///< the run's, absolute
    std::optional<std::uint64_t> out_bytes;
    std::optional<std::uint64_t> err_bytes;
    std::vector<std::string> warnings; ///< data that could not be obtained, and why
    WholeTraining training;
    std::vector<NodeSample> samples = {}; ///< the newest link's
    GpuTime gpu_time = {};                ///< so far, over all links
    IdleRecords idle = {};                ///< the newest link's
    std::optional<CredentialRecords> credentials = {};
    std::optional<CodeFacts> code = {};         ///< unset: no snapshot, or unreadable
    std::optional<StartForecast> forecast = {}; ///< while it waits
};

/// An event in words: `got SIGTERM`, `asked to stop by ada@login1`. Not sanitised.
std::string event_text(const Event& event, const RunStatus& status);

/// Lines for users, not sanitised. Only the names of environment variables: values may be secrets.
std::vector<std::string> show_lines(const WholeRun& whole, Time now);

/// For --json; only the names of environment variables.
report::Json::Members show_document(const WholeRun& whole, Time now);

} // namespace gpuq::cli
