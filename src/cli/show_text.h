// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/training_text.h"
#include "report/json.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/journal.h"
#include "runs/samples.h"
#include "runs/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// One run in full, as people and scripts are shown it. Pure.
namespace gpuq::cli {

/// All that `gpuq show` found out.
struct WholeRun {
    RunStatus status;
    std::vector<Event> journal;
    std::string folder; ///< of the run, absolute
    std::optional<std::uint64_t> out_bytes;
    std::optional<std::uint64_t> err_bytes;
    std::vector<std::string> warnings; ///< what could not be asked, and why
    WholeTraining training;
    std::vector<NodeSample> samples = {}; ///< of its newest link
    GpuTime gpu_time = {};                ///< so far, over all links
    IdleRecords idle = {};                ///< of its newest link
    std::optional<CredentialRecords> credentials = {};
};

/// What happened, for a person: `got SIGTERM`, `asked to stop by ada@login1`. Not sanitised.
std::string event_in_words(const Event& event, const RunStatus& status);

/// Lines for a person, not sanitised. Of an environment only the names: values may be secrets.
std::vector<std::string> show_lines(const WholeRun& whole, Time now);

/// For --json; of an environment only the names.
report::Json::Members show_document(const WholeRun& whole, Time now);

} // namespace gpuq::cli
