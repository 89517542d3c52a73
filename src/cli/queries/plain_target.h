// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/query_status.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Plain jobs, the user's own that gpuq did not start, as arguments of gpuq's verbs.
namespace gpuq::cli {

/// The plain jobs to list.
struct PlainJobs {
    std::vector<RunStatus> jobs; ///< newest first
    std::optional<Time> at;      ///< time of this data; unset: they are unknown
    std::string silent;          ///< why they are unknown or out of date; empty: no problem
};

/// At most one RPC, and none if `statuses` has already queried the jobs (own_jobs_now). Gives the
/// waiting runs of `statuses` the cached estimates of their start.
PlainJobs find_plain_jobs(Services& services, Store& store, RunStatuses& statuses, Time now);

/// `plain Slurm jobs unknown: Slurm does not answer`, `plain Slurm jobs as they were 8 s
/// ago`; empty if they are current.
std::string age_text(const PlainJobs& plain, Time now);

/// Runs and plain jobs in one list, newest first, as each of the two is.
std::vector<RunStatus> merged(std::vector<RunStatus> runs, std::vector<RunStatus> plain);

/// The plain jobs that an argument matches: by id, including a whole array, or by name. If a name
/// matches several, those that have not ended, else the newest. One RPC, and one query to
/// accounting for an old job. `missing` if there is none or accounting does not respond,
/// `unreachable` if Slurm does not respond.
Result<std::vector<RunStatus>> plain_jobs_meant(Services& services, Store& store,
                                                const std::string& word);

/// The target of an argument: a run on disk, whose name and id take precedence, or one plain job.
/// `usage` if several jobs match.
using Target = std::variant<RunKey, RunStatus>;
Result<Target> find_target(Services& services, Store& store, const std::string& word);

/// Another user's job, or any other that is no run of this user, as a plain job.
RunStatus as_plain_job(const Job& job, const std::string& cluster, Time now);

/// A plain job as it is now, from the jobs that all commands of the user share: at most one RPC,
/// and a query to accounting once Slurm has forgotten the job; `lost` if accounting does not know
/// how it ended. `unreachable`: not known.
Result<RunStatus> plain_job_now(Services& services, Store& store, const RunStatus& job);

/// The run that is the target of an argument, for a verb that needs its supervisor. `usage` for a
/// plain job, with an alternative: `instead`, in which `{0}` is replaced by the job's id.
Result<RunKey> find_supervised(Services& services, Store& store, const std::string& word,
                               std::string_view verb, std::string_view instead);

/// The error `which of 3 jobs? Name one: 20_1 (train), ...`.
Error which_of(const std::vector<RunStatus>& found);

} // namespace gpuq::cli
