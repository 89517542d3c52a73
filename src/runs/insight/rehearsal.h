// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/accounting.h"
#include "runs/insight/diagnosis.h"
#include "runs/insight/progress.h"
#include "runs/records/journal.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// `gpuq rehearse`: a real chain of three links in a few minutes. The first link is notified as if
/// its time was over; the program of the second is killed; the third is notified to save and stop.
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

/// A link's history from its journal. The caller fills in `first` and `last` from the link's
/// output.
struct RehearsedLink {
    struct Save {
        Time at; ///< when it was complete
        std::string path;
        std::optional<std::uint64_t> step;
        std::uint64_t bytes = 0;
    };
    std::optional<Time> started_at; ///< the program's start
    std::optional<Time> noticed_at;
    std::uint64_t notified = 0; ///< processes that got the notice's signal
    std::optional<Time> killed_at;
    std::optional<Ending> ending;
    std::string resumed_from;
    std::vector<Save> saves;
    std::optional<telemetry::Progress> first, last;
};
RehearsedLink rehearsed_link(const std::vector<Event>& journal);

/// The next action of `gpuq rehearse`.
enum class RehearsalAct { wait, notice, kill, stop, over };
/// Decides the next action. A program is left alone until a moment after its first checkpoint; if
/// it does not save on its own, for `warm_up`, and in later links for as long as in the first.
RehearsalAct next_act(const std::vector<RehearsedLink>& links, Time now,
                      std::chrono::seconds warm_up);

/// How often nodes fail in the run's queue.
struct FailureRate {
    std::chrono::seconds node_time{0}; ///< sum over all nodes of the queue
    int failures = 0;
};
/// Nothing if accounting covers less than a week: too short for a rate.
std::optional<FailureRate> failure_rate(const NodeHistory& history,
                                        const std::vector<std::string>& nodes, Time now);

/// The interval between checkpoints that minimises the sum of the time for saving and the work lost
/// by failures: sqrt(2 x save x mean time between failures). J. W. Young, A first order
/// approximation to the optimum checkpoint interval, CACM 17(9), 1974.
std::chrono::seconds best_interval(std::chrono::milliseconds save,
                                   std::chrono::seconds between_failures);

struct RehearsalReport {
    std::vector<Finding> findings; ///< with a problem, a long run would not continue
    std::optional<std::chrono::milliseconds> save; ///< from the notice to the complete checkpoint
    std::optional<std::chrono::milliseconds> interval; ///< between the program's own checkpoints
    std::optional<std::chrono::milliseconds> lost;     ///< work lost by the SIGKILL
    std::optional<std::chrono::milliseconds> gap;      ///< time without a program between two links
    std::optional<std::chrono::seconds> between_failures; ///< for the nodes of one such run
    std::optional<std::chrono::seconds> advised;          ///< interval between checkpoints
};
/// The findings start, notice, checkpoint, resume, kill, loss and interval. `silence`: why there is
/// no failure rate.
RehearsalReport evaluate_rehearsal(const Request& request, const std::vector<RehearsedLink>& links,
                                   const std::optional<FailureRate>& rate,
                                   const std::string& silence);

} // namespace gpuq
