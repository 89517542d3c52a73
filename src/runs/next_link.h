// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/clock.h"
#include "ports/store.h"
#include "runs/chain.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

class Cluster;

/// The history of a run's links from disk, oldest first, up to and including `last`.
std::vector<LinkPast> read_links(Store& store, const RunKey& key, LinkNumber last);

/// The last time at which a link is known to have been alive, at most `latest`. For a link that
/// recorded no ending: its end was noticed only later.
Time last_life(Store& store, const RunKey& key, LinkNumber link, Time latest);

/// The job of a later link.
struct NextLink {
    LinkNumber link;
    std::chrono::seconds length{0};
    std::optional<JobId> after; ///< starts when that job has ended
    std::chrono::seconds pause{0};
    std::vector<std::string> exclude;
    bool resumed = false;
};

/// The subset of `nodes` that a link should avoid: none if the queue has too few other nodes, since
/// the link could then never start.
std::vector<std::string> avoidable(Cluster& cluster, const Request& request,
                                   const std::vector<std::string>& nodes);

/// Makes sure that the link has one Slurm job: a job that already exists, on disk or in Slurm, is
/// returned. If two processes submit at the same time, the first one to write job.json wins and the
/// other's job is cancelled; should both responses be lost, the link's claim lets only one job run
/// it.
///
/// `unreachable`: the job may have been submitted. Do not retry within two Slurm message timeouts
/// (20 s, see slurm.conf(5), MessageTimeout), unless the job is found before. `denied` carries
/// Slurm's message. `stopped`: this link's job was cancelled while it was pending, and no other job
/// replaces it unless the user resumes the run.
Result<JobId> submit_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                          const NextLink& next);

/// Replaces `old`, which was submitted early and without a pause, by another job. The new job is
/// submitted first: if anything fails, the link still has a job.
Result<JobId> replace_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                           const NextLink& next, JobId old);

/// Gives the link another job that does not start for a long time: one that an earlier call has
/// submitted, if its response was lost. The caller, whose job holds the GPUs, must exit afterwards.
/// held.json records the reason (runs/credentials.h).
Result<JobId> hold_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                        NextLink next);
/// Lets a held link start: replaces its jobs by one without a pause. Succeeds as well if no link is
/// held.
Result<void> release_link(Store& store, Cluster& cluster, Clock& clock, const RunKey& key);
/// The start delay of a held link; the user is expected to log in or to act before it is over.
constexpr std::chrono::seconds k_held_for = std::chrono::hours(24 * 30);

/// Cancels all jobs of a link that is not needed. A job that has claimed its link is left alone: it
/// runs the program. Succeeds if the link has no job.
Result<void> withdraw_link(Store& store, Cluster& cluster, const Run& run, LinkNumber link);

} // namespace gpuq
