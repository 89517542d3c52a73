// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/status.h"

#include <optional>
#include <vector>

/// What the state folder tells about runs. No Slurm.
namespace gpuq {

/// All that is on disk about a run. What is missing, torn or unreadable is left out; a run whose
/// folder is not there has no evidence but its key. Of one that has ended the heartbeat and the
/// stop request no longer matter and are not read: a list may have a thousand of them.
Evidence read_evidence(Store& store, const RunKey& key);

/// How a run ended according to the disk alone, cheaper than all its evidence: nothing while
/// neither its supervisor nor a client has said so.
std::optional<Ending> read_ending(Store& store, const RunKey& key);

/// The keys of all runs, newest first. Empty when there is none; an error when the folder can't be
/// read.
Result<std::vector<RunKey>> all_runs(Store& store);

/// The keys of the runs that nobody has seen end, newest first.
Result<std::vector<RunKey>> active_runs(Store& store);

/// run.json of a run, with the time limit of walltime.json if it has one; `missing` or what is
/// wrong with it.
Result<Run> read_run(Store& store, const RunKey& key);

/// The newest link that has a folder; 1 when there is none.
LinkNumber newest_link(Store& store, const RunKey& key);

/// The link that runs, or is to run next: of a chain the newest may only wait for its turn.
LinkNumber current_link(Store& store, const RunKey& key);

} // namespace gpuq
