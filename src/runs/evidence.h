// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/status.h"

#include <optional>
#include <vector>

/// Reads the records of runs in the state directory. Makes no Slurm calls.
namespace gpuq {

/// Everything on disk about a run. Missing, torn or unreadable records are left out; the last ones
/// are named in `trouble`. A run without a directory has only its key.
Evidence read_evidence(Store& store, const RunKey& key);

/// How a run ended according to the disk alone; cheaper than read_evidence(). Nothing until its
/// supervisor or a client has recorded its end.
std::optional<Ending> read_ending(Store& store, const RunKey& key);

/// The keys of all runs, newest first. Empty if there are none; an error if the directory can't be
/// read.
Result<std::vector<RunKey>> all_runs(Store& store);

/// The keys of the runs that are not known to have ended, newest first.
Result<std::vector<RunKey>> active_runs(Store& store);

/// run.json of a run, with the changes of walltime.json applied. Fails with `missing` if the file
/// does not exist, or with the reason why it is invalid.
Result<Run> read_run(Store& store, const RunKey& key);

/// The newest link that has a directory; 1 if none has.
LinkNumber newest_link(Store& store, const RunKey& key);

/// The link that runs or will run next. In a chain, the newest link may only be waiting for its
/// predecessor.
LinkNumber current_link(Store& store, const RunKey& key);

} // namespace gpuq
