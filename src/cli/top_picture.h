// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/training_text.h"
#include "report/json.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/overview.h"
#include "runs/samples.h"
#include "runs/status.h"
#include "tui/picture.h"

#include <string>
#include <vector>

/// What `gpuq top` shows, out of what was found. Pure.
namespace gpuq::cli {

struct TopFound {
    Overview overview;
    std::vector<RunStatus> runs; ///< completed by the overview
    std::string trouble;         ///< besides the overview's own
};

tui::Picture top_picture(const TopFound& found, Time now);

/// What takes longer to find out, of one run.
struct TopCloser {
    RunStatus run;
    WholeTraining training;
    std::vector<NodeSample> newest;
    std::vector<Sample> samples; ///< of the last minutes
    IdleRecords idle;
    std::optional<CredentialRecords> credentials;
    std::optional<Time> saved_at = {}; ///< of a chain: its newest checkpoint
};

/// What changes first: that its GPUs lie idle, its training in words, its GPUs, how far its chain
/// is, what becomes of its ticket. Curves, the most important first: the loss, how busy its GPUs
/// were, how much of their memory was used, processors, memory, other measures of the training.
tui::Detail top_detail(const TopCloser& closer, Time now);

/// For --json.
report::Json::Members top_document(const TopFound& found, Time now);

} // namespace gpuq::cli
