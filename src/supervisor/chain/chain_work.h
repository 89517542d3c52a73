// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"
#include "runs/chain.h"
#include "supervisor/base/context.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

/// The disk and Slurm operations of a chain. All of them may block for a long time; they are called
/// in helper processes (supervisor/base/helper.h), which return their results encoded
/// (core/codec.h).
namespace gpuq::supervisor {

/// A checkpoint of the program, with the result of the user's own check (--valid).
struct CheckedCheckpoint {
    checkpoint::Found found;
    std::optional<bool> valid; ///< nullopt: not checked
    bool operator==(const CheckedCheckpoint&) const = default;
};
/// The newest few checkpoints in the program's checkpoint location, newest first.
using CheckpointSet = std::vector<CheckedCheckpoint>;

/// True if the run may resume from it: it is complete and was not rejected by the user's own check.
bool is_usable(const CheckedCheckpoint& checked, const Chain& chain);
/// The newest usable checkpoint, or nullptr; points into `candidates`.
const CheckedCheckpoint* newest_usable(const CheckpointSet& candidates, const Chain& chain);

/// Scans again; `before` is the previous result. New complete checkpoints are checked by the user's
/// own command, and the newest two usable ones are kept out of the program's reach.
CheckpointSet find_checkpoints(Store& store, const Run& run, const CheckpointSet& before);

/// The same for the run with this record on disk; nullopt if it cannot be read.
std::optional<CheckpointSet> find_checkpoints_again(Services& services, const Options& options,
                                                    const CheckpointSet& before);

/// How a link starts.
struct LinkStart {
    Restart restart = Restart::first;
    std::string checkpoint;         ///< to resume from; empty: none
    std::chrono::seconds length{0}; ///< of this link
    std::chrono::seconds lead{0};   ///< how long before the end of the link the program is notified
    std::string why;                ///< the reason, for users
    std::optional<Ending> previous; ///< end of the previous link, if that link could not record it
                                    ///< itself
    std::string changed; ///< program files changed since the previous link, comma-separated; empty:
                         ///< none
    bool operator==(const LinkStart&) const = default;
};

/// How the first link starts.
LinkStart first_link_start(const Request& request, Time now);

/// The judgment on the link before `options.link`: a turn, or `leave`, or neither while the outcome
/// is unknown.
struct PredecessorCheck {
    std::optional<LinkStart> link_start;
    bool leave = false; ///< the run is over, and that is recorded on disk
    std::string wait;   ///< why there is no answer yet
    bool operator==(const PredecessorCheck&) const = default;
};
PredecessorCheck check_predecessor(Services& services, const Options& options);

/// The submission of the next link. Without a job and a failure, no further link is needed.
struct NextSubmission {
    std::optional<JobId> job;
    std::optional<std::string> failure; ///< try again later
    bool operator==(const NextSubmission&) const = default;
};
/// Submits the link after this one, which lasts `own_length`.
NextSubmission submit_next(Services& services, const Options& options,
                           std::chrono::seconds own_length);

/// The result after the end of the program: whether the run continues, and if so, the job of its
/// next link. Decision::wait: the record of the run could not be read.
struct LinkOutcome {
    Verdict verdict;
    CheckpointSet candidates;
    std::optional<JobId> next;
    bool operator==(const LinkOutcome&) const = default;
};
/// False for an answer that is as good as none.
inline bool is_valid(const LinkOutcome& outcome)
{
    return outcome.verdict.decision != Verdict::Decision::wait;
}
/// `self`: this link as far as this process knows it, including its ending. `by_itself`: the
/// program ended without being killed, so the files it wrote last are final.
LinkOutcome conclude(Services& services, const Options& options, LinkPast self,
                     const CheckpointSet& before, bool by_itself);

/// Cancels the job of the next link once it is on disk that the run is over. If Slurm does not
/// answer, the job stays; once started, it sees that the run is over and leaves.
void withdraw_next(Services& services, const Options& options);

} // namespace gpuq::supervisor
