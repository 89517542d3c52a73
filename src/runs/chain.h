// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "runs/journal.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A run that is longer than one Slurm job: what became of its links, and what follows. Pure.
/// man gpuq-chain says the same to people.
namespace gpuq {

/// What one link of a chain came to.
struct LinkPast {
    LinkNumber link;
    std::optional<Time> started_at; ///< its supervisor's first word
    std::optional<Time> noticed_at; ///< the program was told to save and leave
    std::optional<Ending> ending;   ///< nothing: nobody can say yet
    std::string host;               ///< first node
    std::string checkpoint;         ///< the newest whole one it made; empty: none
    bool saved_after_notice = false;
    bool preempted = false; ///< it was told because a job of higher priority wants its place
    bool resumed = false;   ///< a person let the run go on here: what was before is forgiven

    bool saved() const { return !checkpoint.empty(); }
    bool operator==(const LinkPast&) const = default;
};

/// That a file was written after a notice. A second before counts as well: the kernel's clock for
/// files ticks every 4 ms, and file servers have their own.
bool is_after_notice(Time modified, const std::optional<Time>& noticed_at);

/// What a journal tells of its link.
LinkPast link_past(LinkNumber link, const std::vector<Event>& journal);

/// How the link before that of `journal` ended, which could not say so itself, as this one has
/// concluded when it began; nothing when it had not to.
std::optional<Ending> ending_before(const std::vector<Event>& journal);

/// Why a link is started: GPUQ_CAUSE.
enum class Restart { first, timeout, preempt, node, crash, user };
std::string_view word(Restart restart);
std::optional<Restart> restart_from_word(std::string_view text);

/// Whether a chain goes on after its newest link.
struct Verdict {
    enum class Go {
        on,   ///< with another link
        over, ///< the run has ended: `ending`
        wait, ///< it is not known yet how the newest link ended
    };
    Go go = Go::wait;
    Restart restart = Restart::first; ///< of the next link
    std::chrono::seconds pause{0};    ///< before it starts
    std::vector<std::string> exclude; ///< nodes that it is to avoid
    std::string why;                  ///< in words
    std::optional<Ending> ending;     ///< of the run, when it is over
    bool operator==(const Verdict&) const = default;
};

/// `links` are all of the run's, oldest first; without any, the first is to start. The rules:
///
/// - finished with 0, or 93 (do not continue): over. 85 (continue me): on. A program that was told
///   to save, did, and left, goes on whatever its status.
/// - time limit and preemption: on. Node failure, or nobody knows: on, elsewhere; at most 5 in a
///   row without a checkpoint in between.
/// - any other end of the program is a crash: on, at most 3 times; before the first checkpoint of
///   the run: over at once.
/// - 3 links without a new checkpoint: over; the first already, when the program may not begin
///   again from scratch.
/// - stopped, cancelled, not startable: over.
/// - over as well when the time, the links, the GPU time or the date of the request is used up.
Verdict judge(const Request& request, const std::vector<LinkPast>& links, Time now);

/// What is asked for a link, before what is left of the run cuts it short.
std::chrono::seconds length_of(const Chain& chain, LinkNumber link);

/// How long the next link may run: a link's length, or what is left of the run's time, of its GPU
/// time or until its date.
std::chrono::seconds next_length(const Request& request, const std::vector<LinkPast>& links,
                                 Time now);

/// Nodes that have failed under links, each once.
std::vector<std::string> failed_nodes(const std::vector<LinkPast>& links);

/// The time the links have run, all together.
std::chrono::seconds time_used(const std::vector<LinkPast>& links, Time now);

/// How many links the run will have had in the end, when each takes its time; never fewer than
/// there are. Nothing for a run that goes on until it is done: nobody has said when.
std::optional<int> expected_links(const Request& request, const std::vector<LinkPast>& links,
                                  Time now);

/// How long before the end of a link its program is told: what earlier links took from the notice
/// to their end, and some seconds; of the first, when nobody knows, a twentieth of the link, 10 s
/// to 5 min. More after a link that did not save in time.
std::chrono::seconds notice_lead(std::chrono::seconds length, const std::vector<LinkPast>& links);

} // namespace gpuq
