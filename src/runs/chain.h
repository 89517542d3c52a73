// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "runs/records/journal.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Runs that are longer than one Slurm job: how their links ended, and whether and how the next
/// link starts. Pure. man gpuq-chain describes the same rules for users.
namespace gpuq {

/// The history of one link of a chain.
struct LinkPast {
    LinkNumber link;
    std::optional<Time> started_at; ///< when its supervisor started
    std::optional<Time> noticed_at; ///< when the program was first notified to save and exit
    std::optional<Ending> ending;   ///< unset: not yet known
    std::string host;               ///< first node
    std::string checkpoint;         ///< the newest complete one it wrote; empty: none
    bool saved_after_notice = false;
    bool preempted = false; ///< notified because a job of higher priority needs its nodes
    bool resumed = false;   ///< resumed by the user: earlier failures no longer count

    bool saved() const { return !checkpoint.empty(); }
    bool operator==(const LinkPast&) const = default;
};

/// True if a file was written after a notice. A second before it counts as well: the kernel's clock
/// for file times ticks every 4 ms, and file servers have clocks of their own.
bool is_after_notice(Time modified, const std::optional<Time>& noticed_at);

/// The end of the link in an event supervisor_started or limit_changed; nothing if it has none.
std::optional<Time> end_of_link(const Event& event);

/// Derives a link's history from its journal.
LinkPast link_past(LinkNumber link, const std::vector<Event>& journal);

/// How the predecessor of `journal`'s link ended, as this link determined when it started because
/// the predecessor had recorded no ending. Nothing if the predecessor had.
std::optional<Ending> ending_before(const std::vector<Event>& journal);

/// Why a link is started: GPUQ_CAUSE.
enum class Restart { first, timeout, preempt, node, crash, user };
constexpr Restart last_of(Restart)
{
    return Restart::user;
}
std::string_view word(Restart restart);

/// Whether a chain continues after its newest link.
struct Verdict {
    enum class Decision {
        next_link, ///< another link follows
        over,      ///< the run has ended: `ending`
        wait,      ///< it is not yet known how the newest link ended
    };
    Decision decision = Decision::wait;
    Restart restart = Restart::first; ///< why the next link starts
    std::chrono::seconds pause{0};    ///< before the next link starts
    std::vector<std::string> exclude; ///< nodes that the next link should avoid
    std::string why;                  ///< the reason, as a sentence
    std::optional<Ending> ending;     ///< how the run ended, if it is over
    bool operator==(const Verdict&) const = default;
};
constexpr Verdict::Decision last_of(Verdict::Decision)
{
    return Verdict::Decision::wait;
}

/// Decides whether a chain continues. `links` holds all links of the run, oldest first; if it is
/// empty, the first link starts. The rules:
///
/// - exit status 0, or 93 (do not continue): over. 85 (continue me): continue. A program that was
///   notified, saved and exited continues with any status except 93.
/// - time limit and preemption: continue. Node failure or unknown cause: continue on other nodes,
///   until 5 links in a row have failed without a checkpoint.
/// - any other end of the program is a crash: continue, at most 3 times; over at once before the
///   run's first checkpoint.
/// - 3 links without a new checkpoint: over; the first such link ends the run if it has no
///   checkpoint and may not start from scratch.
/// - stopped, cancelled, not startable, input lost: over.
/// - over as well when the request's time, links, GPU time or end date are used up.
Verdict decide_next(const Request& request, const std::vector<LinkPast>& links, Time now);

/// The requested length of a link, not yet limited by the run's remaining time.
std::chrono::seconds length_of(const Chain& chain, LinkNumber link);

/// The remaining time of a run, GPU time and end date included; never negative.
std::chrono::seconds time_left(const Request& request, const std::vector<LinkPast>& links,
                               Time now);

/// The length of the next link: as requested, or less if time_left() is less.
std::chrono::seconds next_length(const Request& request, const std::vector<LinkPast>& links,
                                 Time now);

/// Why no further link of a chain can start, the first one if there are none: the limit that is
/// used up. Nothing if one can.
std::optional<std::string> why_no_link(const Request& request, const std::vector<LinkPast>& links,
                                       Time now);

/// Nodes that failed under links, each listed once.
std::vector<std::string> failed_nodes(const std::vector<LinkPast>& links);

/// The total time that the links have run.
std::chrono::seconds time_used(const std::vector<LinkPast>& links, Time now);

/// The expected number of links of the run if each uses its full length; never less than the links
/// that exist. Nothing for a run whose first link has a length of its own, which runs until it is
/// finished.
std::optional<int> expected_links(const Request& request, const std::vector<LinkPast>& links,
                                  Time now);

/// How long before the end of a link its program is notified: the longest time that an earlier link
/// took from the notice to its end, plus some seconds, and half as much again if the last one did
/// not save in time. Without such a link: a twentieth of the link's length, between 10 s and 5 min.
/// Never more than half of the link.
std::chrono::seconds notice_lead(std::chrono::seconds length, const std::vector<LinkPast>& links);

} // namespace gpuq
