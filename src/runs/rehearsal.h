// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/cluster.h"
#include "runs/diagnosis.h"
#include "runs/journal.h"
#include "runs/progress.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// `gpuq rehearse`: a real chain of three links in a few minutes. The first is told to save, as if
/// its time was over; the program of the second is killed; the third is told to save and stop.
/// Pure.
namespace gpuq {

/// The line in runs/KEY/inbox/rehearsal, for the supervisor of one link.
struct RehearsalRequest {
    enum class Act {
        notice, ///< as at the end of the link
        kill,   ///< SIGKILL to the program
    };
    LinkNumber link;
    Act act = Act::notice;
    bool operator==(const RehearsalRequest&) const = default;
};
std::string to_line(const RehearsalRequest& request);
std::optional<RehearsalRequest> rehearsal_request_in(std::string_view line);

/// What a journal and the output of its link tell; `first` and `last` are the caller's to fill in.
struct RehearsedLink {
    struct Save {
        Time at; ///< complete
        std::string path;
        std::optional<std::uint64_t> step;
        std::uint64_t bytes = 0;
    };
    std::optional<Time> started_at; ///< the program
    std::optional<Time> noticed_at;
    std::uint64_t told = 0; ///< processes that got a signal then
    std::optional<Time> killed_at;
    std::optional<Ending> ending;
    std::string resumed_from;
    std::vector<Save> saves;
    std::optional<telemetry::Progress> first, last;
};
RehearsedLink rehearsed_link(const std::vector<Event>& journal);

/// What `gpuq rehearse` is to do now.
enum class RehearsalAct { wait, notice, kill, stop, over };
/// A program is let alone until it has saved, and a moment longer; one that does not save by itself
/// for `warm_up`, in later links as long as in the first.
RehearsalAct next_act(const std::vector<RehearsedLink>& links, Time now,
                      std::chrono::seconds warm_up);

/// How often nodes fail where the run would be.
struct FailureRate {
    std::chrono::seconds node_time{0}; ///< of all nodes of the queue together
    int failures = 0;
};
/// Nothing where accounting has watched for less than a week: too short to tell.
std::optional<FailureRate> failure_rate(const NodeHistory& history,
                                        const std::vector<std::string>& nodes, Time now);

/// The interval between checkpoints that costs least, saves and what failures lose together:
/// sqrt(2 x save x mean time between failures). J. W. Young, A first order approximation to the
/// optimum checkpoint interval, CACM 17(9), 1974.
std::chrono::seconds best_interval(std::chrono::milliseconds save,
                                   std::chrono::seconds between_failures);

struct RehearsalReport {
    std::vector<Finding> findings;                 ///< one problem, and a long run would not go on
    std::optional<std::chrono::milliseconds> save; ///< from the notice to the whole checkpoint
    std::optional<std::chrono::milliseconds> interval;    ///< between two that it made by itself
    std::optional<std::chrono::milliseconds> lost;        ///< by the SIGKILL
    std::optional<std::chrono::milliseconds> gap;         ///< without a program, between two links
    std::optional<std::chrono::seconds> between_failures; ///< of the nodes of one such run
    std::optional<std::chrono::seconds> advised;          ///< interval
};
/// start, notice, checkpoint, resume, kill, loss, interval. `silence`: why there is no rate.
RehearsalReport judge_rehearsal(const Request& request, const std::vector<RehearsedLink>& links,
                                const std::optional<FailureRate>& rate, const std::string& silence);

} // namespace gpuq
