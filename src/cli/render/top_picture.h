// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/top_sweep.h"
#include "cli/render/training_text.h"
#include "core/result.h"
#include "report/json.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/insight/link_records.h"
#include "runs/insight/overview.h"
#include "runs/insight/samples.h"
#include "runs/status.h"
#include "tui/base/picture.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The content of `gpuq top`, from the data collected. Pure.
namespace gpuq::cli {

struct TopFound {
    Overview overview;
    std::vector<RunStatus> runs;                     ///< completed by the overview
    std::string trouble;                             ///< in addition to the overview's own
    std::optional<Error> unlisted = {};              ///< why `runs` is empty, if they can't be read
    std::map<std::uint32_t, std::string> users = {}; ///< names of those who hold GPUs
    /// By the text of a run's key.
    std::map<std::string, std::vector<NodeSample>> newest = {};
    std::vector<TopSweep> sweeps = {}; ///< newest first
    /// Rows of more runs, which ended long ago: newest first, made once.
    std::vector<std::shared_ptr<const tui::RunRow>> old = {};
};

/// Why there is nothing newer, from the disk and from Slurm; empty: no problem.
std::string top_trouble(const TopFound& found);

tui::Picture top_picture(const TopFound& found, Time now);

/// Whether a GPU is free for the user now; empty if unknown.
std::string top_answer(const Overview& overview, Time now);

/// Data of one run that takes longer to collect.
struct TopCloser {
    RunStatus run;
    WholeTraining training;
    std::vector<NodeSample> newest;
    std::vector<Sample> samples; ///< for the last minutes
    IdleRecords idle;
    std::optional<CredentialRecords> credentials;
    std::optional<Time> saved_at = {};   ///< a chain's newest checkpoint
    std::vector<LinkRecords> links = {}; ///< for its timeline
};

/// Facts, those that change first: idle GPUs, its training in words, its GPUs, the progress of its
/// chain, the state of its ticket. Curves, the most important first: the loss, GPU utilisation, GPU
/// memory, processors, memory, then all other measures of the training.
tui::Detail top_detail(const TopCloser& closer, Time now);

/// For --json.
report::Json::Members top_document(const TopFound& found, Time now);

} // namespace gpuq::cli
