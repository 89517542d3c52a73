// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/retention.h"
#include "ports/store.h"
#include "runs/status.h"

#include <cstdint>
#include <optional>
#include <vector>

/// Old runs away.
namespace gpuq {

/// A run as its removal sees it.
struct RunOnShelf {
    RunKey key;
    std::optional<Time> ended_at; ///< unset: it is active, or that is not known; it stays
    std::uint64_t bytes = 0;
};

/// A run that ended so short a time ago stays whatever is asked: its supervisor may still write.
constexpr std::chrono::seconds k_just_ended{60};

/// The runs that go, oldest first: what ended longer ago than `retention.age`, then, while all runs
/// together hold more than `retention.total_bytes`, the next oldest. Pure.
std::vector<RunOnShelf> outdated(std::vector<RunOnShelf> runs, const Retention& retention,
                                 Time now);

/// What is on disk of a run of this status; a folder that can't be read counts nothing and stays.
RunOnShelf on_shelf(Store& store, const RunStatus& status);

/// Removes a run: first what finds it by its jobs, then its folder. Broken off in between it is
/// still there under its key and name, and the next try removes it.
Result<void> remove_run(Store& store, const RunKey& key);

} // namespace gpuq
