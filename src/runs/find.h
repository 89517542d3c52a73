// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Finds the run that a RUN argument denotes. Uses only the disk.
namespace gpuq {

/// The runs that match an argument. At least one.
struct RunMatches {
    std::vector<RunKey> unfinished; ///< according to the disk, newest first
    std::optional<RunKey> finished; ///< the newest one, if no run is unfinished
};

/// Finds runs by the RUN argument: a Slurm job id, a name, `last` (the newest run), a key, or at
/// least the first 8 characters of the second half of a key, as `ls` shows it while the run has no
/// job id. `usage` if an id exists on several clusters; `missing` suggests similar names.
Result<RunMatches> find_runs(Store& store, std::string_view word);

/// The same for a name that something else made at the time of `after` has too: all unfinished runs
/// of that name, else the newest finished one if it is newer than `after`.
Result<RunMatches> find_runs_beside(Store& store, std::string_view name, const RunKey& after);

/// The single run that an argument denotes: the newest unfinished one, else the newest.
Result<RunKey> find_run(Store& store, std::string_view word);

/// The run to use without an argument: the newest unfinished one, else the newest.
Result<RunKey> find_current_run(Store& store);

/// The form in which `ls` shows a run that has no job id yet.
std::string short_key(const RunKey& key);

} // namespace gpuq
