// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "sweeps/parameters.h"
#include "sweeps/records.h"

#include <cstddef>
#include <string_view>
#include <vector>

/// The changes that clients make to a sweep; its workers read them before each try.
namespace gpuq::sweeps {

/// Writes a new sweep and its first tries to disk, before any worker is submitted. `snapshot`: the
/// reference to that of its code; empty: none.
Result<void> write_sweep(Store& store, const Sweep& sweep, const std::vector<Values>& tries,
                         const std::string& snapshot = "");

/// Removes a sweep without workers: nothing is left of it.
void forget_sweep(Store& store, const RunKey& key);

/// Removes the sweeps whose workers' runs have all been removed, if they have ended, are stopped or
/// have used their GPU time, or if they were never complete.
void forget_outdated(Store& store, Time now);

/// Adds tries to a sweep, behind all others.
Result<void> add_tries(Store& store, const RunKey& key, const std::vector<Values>& tries);

/// Makes ended attempts void, so that their tries are run again.
Result<void> retry(Store& store, const RunKey& key, const std::vector<Retry>& retries);

/// No further try starts, and the running ones end.
Result<void> stop_sweep(Store& store, const RunKey& key);
/// Takes back stop_sweep, and the end of the list of proposed tries.
Result<void> continue_sweep(Store& store, const RunKey& key);
/// Ends one try, if it is running.
Result<void> stop_try(Store& store, const RunKey& key, std::size_t number);

/// The sweep denoted by a name, a key, or at least the first 8 characters of a key's second half:
/// the newest unfinished one, else the newest. `missing`.
Result<Sweep> find_sweep(Store& store, std::string_view word);
Result<Sweep> read_sweep(Store& store, const RunKey& key);

/// The keys of all sweeps, newest first.
Result<std::vector<RunKey>> all_sweeps(Store& store);

} // namespace gpuq::sweeps
