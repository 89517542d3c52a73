// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/clock.h"
#include "ports/store.h"
#include "runs/chain.h"
#include "runs/next_link.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// How one link of a chain follows another: the part of both supervisors' work that involves
/// neither a program nor its checkpoints.
namespace gpuq {

class Cluster;

/// The decision for a later link when its job starts.
struct Succession {
    enum class Is {
        link_start, ///< run its program: this job has claimed the link
        leave,      ///< exit: the run is over, as recorded on disk, or another job runs the link
        wait,       ///< wait: it is not yet known how the previous link ended
        hold,       ///< `lacks` returned true: the program may not start yet; nothing is claimed
    };
    Is is = Is::wait;
    Verdict verdict;
    std::vector<LinkPast> links; ///< all previous links, oldest first
    bool has_own_ending = false; ///< the previous link recorded its own ending
    std::string why;             ///< why it must wait
};

/// Decides whether `link`, whose job is `self`, may start after its predecessor. `cluster` may be
/// null if Slurm is not reachable. `take_saved` adds the checkpoints of a link that recorded no
/// ending. `lacks`, called last, returns true if a prerequisite is missing without which the link
/// must not start.
Succession succeed(Store& store, Cluster* cluster, const Run& run, LinkNumber link,
                   std::optional<JobId> self, Time now,
                   const std::function<void(LinkPast&)>& take_saved,
                   const std::function<bool()>& lacks = {});

/// Called after a link has ended with `verdict` on: makes sure that the next link has exactly one
/// job, with the pause that the verdict demands. If that job was cancelled while it was pending,
/// the run ends: `verdict` becomes over. Returns nothing if the link has no job; the next command
/// that reads the run then submits it.
std::optional<JobId> hand_over(Store& store, Cluster* cluster, Clock& clock, const Run& run,
                               NextLink next, Verdict& verdict);

} // namespace gpuq
