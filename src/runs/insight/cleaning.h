// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/retention.h"
#include "ports/store.h"
#include "runs/status.h"

#include <cstdint>
#include <optional>
#include <vector>

/// Removal of old runs.
namespace gpuq {

/// A run, reduced to the properties that decide about its removal.
struct RunOnShelf {
    RunKey key;
    std::optional<Time> ended_at; ///< unset: active or unknown; the run is kept
    std::uint64_t bytes = 0;
};

/// A run that ended more recently than this is always kept: its supervisor may still write.
constexpr std::chrono::seconds k_just_ended{60};

/// The runs to remove, oldest first: those that ended longer ago than `retention.age`; then, while
/// all runs together use more than `retention.total_bytes`, the next oldest. Pure.
std::vector<RunOnShelf> outdated(std::vector<RunOnShelf> runs, const Retention& retention,
                                 Time now);

/// The size and end of a run with this status. A run whose directory can't be read counts as 0
/// bytes and is kept.
RunOnShelf on_shelf(Store& store, const RunStatus& status);

/// Adds the size of each sweep to that of the worker that has ended last, or has not ended: the
/// sweep is removed with it. `shelf` has the runs of `statuses`, in that order.
void add_sweeps(Store& store, const std::vector<RunStatus>& statuses,
                std::vector<RunOnShelf>& shelf);

/// Removes a run: first its entries in the job index, then its directory. If that is interrupted,
/// the run can still be found by key and name, and the next attempt removes it.
Result<void> remove_run(Store& store, const RunKey& key);

} // namespace gpuq
