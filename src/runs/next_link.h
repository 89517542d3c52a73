// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"
#include "runs/chain.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// Everything on disk about the links of a run, oldest first, up to and with `last`.
std::vector<LinkPast> read_links(Store& store, const RunKey& key, LinkNumber last);

/// The last moment, but not after `latest`, at which a link showed that it was there: what ended it
/// without a word was found out only later.
Time last_life(Store& store, const RunKey& key, LinkNumber link, Time latest);

/// The job of a later link.
struct NextLink {
    LinkNumber link;
    std::chrono::seconds length{0};
    std::optional<JobId> after; ///< starts when that job is over
    std::chrono::seconds pause{0};
    std::vector<std::string> exclude;
    bool resumed = false;
};

/// Those of `nodes` that a link is to avoid: none where the queue has not enough others, for
/// nothing would ever start without one.
std::vector<std::string> avoidable(Cluster& cluster, const Request& request,
                                   const std::vector<std::string>& nodes);

/// Gives the link its Slurm job, once: a job that is there already, on disk or in Slurm, is the
/// answer. Of two that submit at the same time the one who writes job.json first wins, the other's
/// job is withdrawn; should both answers be lost, the link's claim lets only one job run it.
///
/// `unreachable`: it may have been submitted. Not to be asked again within `k_settled`, unless the
/// job is found by then; `denied` with Slurm's words; `stopped`: somebody has cancelled the job of
/// this link while it waited, and none takes its place, but for a run that a person resumes.
Result<JobId> submit_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                          const NextLink& next);

/// The same with another job in the place of `old`, which was submitted early and does not know of
/// a pause. The new one first: should anything fail, the link still has a job.
Result<JobId> replace_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                           const NextLink& next, JobId old);

/// Gives the link another job that does not begin for a long time, and is its job from now on; the
/// one that calls this, which has its GPUs, is to leave. held.json says why (runs/credentials.h).
Result<JobId> hold_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                        NextLink next);
/// A link that is held may begin: a job without a pause takes the place of its job. Success also
/// when none is held.
Result<void> release_link(Store& store, Cluster& cluster, Clock& clock, const RunKey& key);
/// By then somebody has logged in, or looks after it.
constexpr std::chrono::seconds k_held_for = std::chrono::hours(24 * 30);

/// Two message time-outs of Slurm (slurm.conf(5), MessageTimeout): what was asked is by then either
/// a job or nothing.
constexpr std::chrono::seconds k_settled{20};

/// Takes the job of a link that is not needed out of the queue. One that has claimed its link is
/// left to itself: it runs the program. Success when there is none.
Result<void> withdraw_link(Store& store, Cluster& cluster, const Run& run, LinkNumber link);

} // namespace gpuq
