// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/render/sweep_table.h"
#include "runs/insight/progress.h"
#include "sweeps/records.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

/// Sweeps as arguments of gpuq's verbs, and their state.
namespace gpuq::cli {

/// `NAME` or `NAME/12`.
struct SweepTarget {
    sweeps::Sweep sweep;
    std::optional<std::size_t> number; ///< of a try
};
/// The sweep, or the try, that an argument denotes. Nothing if it is a run: no sweep has that name,
/// or a run has it too, which is unfinished while the sweep has ended, or else is newer. `missing`:
/// the sweep has no such try, or there is no sweep before a `/N`.
Result<std::optional<SweepTarget>> find_sweep_target(Store& store, std::string_view word);

/// Whether all tries of a sweep, or one of them, have ended according to the disk. False if its
/// files can't be read.
bool has_ended_on_disk(Store& store, const SweepTarget& target);

/// Makes the tries wait that their workers have left without an end. The time until the last sign
/// of life of the worker counts as used.
void release_lost(Store& store, std::vector<sweeps::Try>& tries, Time now);

/// Whether a sweep is listed without --all even if it has ended.
bool is_recent_sweep(const RunKey& key, Time now);

/// The state that follows from the tries of a sweep and `workers`, those that have not ended.
SweepStatus::State state_of(const SweepStatus& status, const std::vector<RunStatus>& workers,
                            bool is_stopped, Time now);

/// Reads the sweep's files and the state of its workers: at most one RPC, none while their
/// heartbeats are fresh.
Result<SweepStatus> query_sweep(Services& services, Store& store, sweeps::Sweep sweep);

/// What the log of a try shows of its training; of a long log only its end.
LinkProgress read_try_output(Store& store, const SweepStatus& status, std::size_t number);

/// Compares the tries by another metric, whose values are read from the logs of all of them.
void compare_by(Store& store, SweepStatus& status, const sweeps::Metric& metric);

/// The worker that is the next to start; if none waits, one that works; null: there is none.
const RunStatus* next_worker(const SweepStatus& status);

/// The sweeps to list, newest first: active ones and those begun within a day; with `want_all`
/// every one. Those that can't be read are omitted. The tries of one that is over are not read. At
/// most one RPC, for the workers of all.
Result<std::vector<SweepLine>> listed_sweeps(Services& services, Store& store, bool want_all);

} // namespace gpuq::cli
