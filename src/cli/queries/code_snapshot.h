// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/code_text.h"
#include "ports/store.h"
#include "snapshots/manifest.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// A directory of which a snapshot is to be taken.
struct SnapshotPlan {
    std::string directory;            ///< absolute
    std::vector<std::string> program; ///< files among its words are part of the snapshot
    bool required = false;            ///< the user asked for it
};

struct CodeSnapshot {
    std::string reference; ///< content of layout::snapshot or layout::sweep_snapshot; empty: none
    std::string problem;   ///< why there is none, for a message; empty if that is no problem
};

/// Takes a snapshot. If it is required, a problem is an error.
Result<CodeSnapshot> take_snapshot(Store& store, const SnapshotPlan& plan);

/// The snapshot of a run or sweep, by the path of its reference; nullopt: it has none. An error if
/// it can't be read.
Result<std::optional<snapshots::Manifest>> find_snapshot(Store& store,
                                                         const std::string& reference);

/// The identity of the snapshot; nullopt: none, or unreadable.
std::optional<std::string> snapshot_id(Store& store, const std::string& reference);

/// The facts about the snapshot that `gpuq show` prints: compares it with the current files, and
/// executes git for the files that differ from its commit. nullopt: none, or unreadable.
std::optional<CodeFacts> code_facts(Store& store, const std::string& reference);

/// The snapshots of all runs and sweeps.
Result<std::vector<std::string>> used_snapshots(Store& store);

} // namespace gpuq::cli
