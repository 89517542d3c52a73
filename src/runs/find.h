// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which run people mean. From the disk alone.
namespace gpuq {

/// The runs that a word fits. At least one.
struct RunMatches {
    std::vector<RunKey> unfinished; ///< as far as the disk knows, newest first
    std::optional<RunKey> finished; ///< the newest of them, when none is unfinished
};

/// What people type as RUN: a Slurm job id, a name, `last` (the newest of all), a key, or the first
/// characters of the second half of a key, as `ls` shows it while there is no job id.
/// `usage` when an id exists on several clusters; `missing` names what is near.
Result<RunMatches> find_runs(Store& store, std::string_view word);

/// The one run that is meant: the newest unfinished, else the newest.
Result<RunKey> find_run(Store& store, std::string_view word);

/// The run that is meant when none is named: the newest that goes on, else the newest.
Result<RunKey> find_current_run(Store& store);

/// How `ls` writes a run that has no job id yet.
std::string short_key(const RunKey& key);

} // namespace gpuq
