// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"
#include "runs/chain.h"
#include "runs/next_link.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// How one link of a chain follows another. What the supervisors of both do, without a program and
/// its checkpoints.
namespace gpuq {

/// What a later link finds when its job starts.
struct Succession {
    enum class Is {
        turn,  ///< its program may run, and this job is the one that runs it: the claim is taken
        leave, ///< nothing to do: the run is over, which is on disk, or another job runs the link
        wait,  ///< nobody can say yet how the link before it ended
        hold,  ///< its program may run, but for what `lacks` said; nothing is claimed
    };
    Is is = Is::wait;
    Verdict verdict;
    std::vector<LinkPast> links; ///< all before it, oldest first
    bool had_word = false;       ///< the one before it has said itself how it ended
    std::string why;             ///< it has to wait
};

/// Judges the link before `link`, for its job `self`. `cluster` may be null: nobody could be asked.
/// `take_saved` completes what a link has saved that left no word. `lacks`, asked last, says that
/// something is missing without which the link is not to begin.
Succession succeed(Store& store, Cluster* cluster, const Run& run, LinkNumber link,
                   std::optional<JobId> self, Time now,
                   const std::function<void(LinkPast&)>& take_saved,
                   const std::function<bool()>& lacks = {});

/// A link has ended, and `verdict` is on: makes sure that the next link has its job, once, with the
/// pause that the verdict demands. A job that somebody has cancelled while it waited ends the run:
/// `verdict` is over then. Nothing: whoever looks at the run next submits it.
std::optional<JobId> hand_over(Store& store, Cluster* cluster, Clock& clock, const Run& run,
                               NextLink next, Verdict& verdict);

} // namespace gpuq
