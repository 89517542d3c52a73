// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "runs/look.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Plain jobs, the user's own that gpuq did not start, in the verbs of gpuq.
namespace gpuq::cli {

/// Those that are listed.
struct PlainJobs {
    std::vector<RunStatus> jobs; ///< the newest first
    std::optional<Time> at;      ///< of which moment; unset: they are not known
    std::string silent;          ///< why not, or not newer; empty: all is well
};

/// By at most one RPC, and none where `looked` has asked for the jobs already (own_jobs_now). Gives
/// the waiting runs of `looked` the estimates of their start that are kept.
PlainJobs find_plain_jobs(Doors& doors, Store& store, Looked& looked, Time now);

/// `plain jobs are not known: Slurm does not answer`, `plain jobs as Slurm had them 8 s ago`; empty
/// where they are of this moment.
std::string age_in_words(const PlainJobs& plain, Time now);

/// Runs and plain jobs in one list, the newest first.
std::vector<RunStatus> merged(std::vector<RunStatus> runs, const std::vector<RunStatus>& plain);

/// The plain jobs that a word fits: by id, also of a whole array, or by name. Of a name those that
/// have not ended, else the newest. One RPC. `missing` when there is none, `unreachable` when
/// Slurm, or for an old job accounting, does not answer.
Result<std::vector<RunStatus>> plain_jobs_meant(Doors& doors, Store& store,
                                                const std::string& word);

/// What a word means: a run on disk, whose name and id come first, else one plain job. `usage` when
/// several jobs fit.
using Target = std::variant<RunKey, RunStatus>;
Result<Target> find_target(Doors& doors, Store& store, const std::string& word);

/// The run that a word means, for a verb that works with its supervisor. `usage` for a plain job,
/// with what to use instead: `instead` has `{}` in the place of its id.
Result<RunKey> find_supervised(Doors& doors, Store& store, const std::string& word,
                               std::string_view verb, std::string_view instead);

/// `which of 3 jobs? Name one: 20_1 (train), ...`.
Error which_of(const std::vector<RunStatus>& found);

} // namespace gpuq::cli
