// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/chain.h"

#include "core/exit_status.h"
#include "core/walltime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

constexpr int k_most_crashes = 3;
constexpr int k_most_without_progress = 3;
constexpr int k_most_node_failures = 5;
/// A shorter link is not worth starting.
constexpr seconds k_shortest_link = 5s;

constexpr std::array<std::string_view, 6> k_restarts = {"first", "timeout", "preempt",
                                                        "node",  "crash",   "user"};

/// The meaning of a link's end for its chain.
enum class Kind { over, planned, preempted, node, crash };

bool left_after_notice(const LinkPast& link)
{
    return link.noticed_at && link.saved_after_notice;
}

Kind kind_by_ending(const LinkPast& link)
{
    const Ending& ending = *link.ending;
    switch (ending.cause) {
    case Cause::stopped:
    case Cause::cancelled:
    case Cause::not_started:
    case Cause::input_lost:
        return Kind::over;
    case Cause::time_limit:
        return Kind::planned;
    case Cause::preempted:
        return Kind::preempted;
    case Cause::node_failed:
    case Cause::lost:
        return Kind::node;
    case Cause::finished:
        if (ending.status == k_status_do_not_continue) {
            return Kind::over;
        }
        if (ending.status == k_status_continue_me || left_after_notice(link)) {
            return Kind::planned;
        }
        return ending.status == 0 ? Kind::over : Kind::crash;
    case Cause::crashed:
    case Cause::memory:
    case Cause::gpu_memory:
        break;
    }
    return left_after_notice(link) ? Kind::planned : Kind::crash;
}

/// A preempted program that exits during the grace period, with any status, counts as preempted:
/// without the preemption it would not have exited.
Kind kind_of(const LinkPast& link)
{
    const Kind kind = kind_by_ending(link);
    const bool may_continue = kind == Kind::planned || kind == Kind::crash;
    return link.preempted && may_continue ? Kind::preempted : kind;
}

using Links = std::vector<LinkPast>;

/// Counting starts at the last link that the user resumed.
Links::const_iterator begin_of_count(const Links& links)
{
    const auto last = std::find_if(links.rbegin(), links.rend(),
                                   [](const LinkPast& link) { return link.resumed; });
    return last == links.rend() ? links.begin() : last.base() - 1;
}

/// The number of links of these kinds in a row at the end that saved no checkpoint.
int in_vain(const Links& links, std::initializer_list<Kind> kinds)
{
    int count = 0;
    for (auto link = links.end(); link != begin_of_count(links); --link) {
        const LinkPast& past = *std::prev(link);
        const bool counts = past.ending && !past.saved() &&
                            std::find(kinds.begin(), kinds.end(), kind_of(past)) != kinds.end();
        if (!counts) {
            break;
        }
        ++count;
    }
    return count;
}

int crashes(const Links& links)
{
    return static_cast<int>(
        std::count_if(begin_of_count(links), links.end(), [](const LinkPast& link) {
            return link.ending && kind_of(link) == Kind::crash;
        }));
}

bool ever_saved(const Links& links)
{
    return std::any_of(links.begin(), links.end(),
                       [](const LinkPast& link) { return link.saved(); });
}

Verdict over(const LinkPast& last, const std::string& why)
{
    Verdict verdict;
    verdict.decision = Verdict::Decision::over;
    verdict.why = why;
    verdict.ending = last.ending;
    verdict.ending->continues = false;
    if (!why.empty()) {
        std::string& detail = verdict.ending->detail;
        detail += (detail.empty() ? "" : "; ") + why;
    }
    return verdict;
}

/// A budget is used up. The program has not finished, regardless of its exit status.
Verdict used_up(const LinkPast& last, const std::string& what)
{
    Verdict verdict = over(last, "");
    verdict.why = what;
    verdict.ending =
        Ending{static_cast<int>(ExitStatus::time_limit), Cause::time_limit, what, last.ending->at};
    return verdict;
}

Verdict on(Restart restart, std::string why)
{
    Verdict verdict;
    verdict.decision = Verdict::Decision::next_link;
    verdict.restart = restart;
    verdict.why = std::move(why);
    return verdict;
}

Verdict after_planned(const Chain& chain, const Links& links)
{
    const LinkPast& last = links.back();
    if (!last.saved() && !ever_saved(links) && !chain.from_scratch) {
        return used_up(last, "its link ended before it saved a complete checkpoint, and it may not "
                             "start over (--restart-from-scratch)");
    }
    if (in_vain(links, {Kind::planned, Kind::crash}) >= k_most_without_progress) {
        return used_up(last,
                       fmt::format("{} links without a new checkpoint", k_most_without_progress));
    }
    return on(Restart::timeout, "the link's time was over");
}

Verdict after_crash(const Links& links)
{
    constexpr std::array<seconds, k_most_crashes> k_pauses{0s, 60s, 300s};
    const LinkPast& last = links.back();
    if (!ever_saved(links)) {
        return over(last, "");
    }
    if (in_vain(links, {Kind::planned, Kind::crash}) >= k_most_without_progress) {
        return over(last,
                    fmt::format("{} links without a new checkpoint", k_most_without_progress));
    }
    const int count = crashes(links);
    if (count > k_most_crashes) {
        return over(last, fmt::format("it has failed {} times", count));
    }
    Verdict verdict = on(Restart::crash, fmt::format("it failed with status {}, after a checkpoint",
                                                     last.ending->status));
    verdict.pause = k_pauses[static_cast<std::size_t>(count - 1)];
    return verdict;
}

Verdict after_node_failure(const Links& links)
{
    const LinkPast& last = links.back();
    if (in_vain(links, {Kind::node}) >= k_most_node_failures) {
        return over(last, fmt::format("{} nodes in a row have failed", k_most_node_failures));
    }
    Verdict verdict =
        on(Restart::node,
           last.host.empty() ? "its node failed" : fmt::format("its node {} failed", last.host));
    verdict.exclude = failed_nodes(links);
    return verdict;
}

/// The remaining GPU time of the request; nothing if the request sets no limit.
std::optional<seconds> gpu_time_left(const Request& request, const Links& links, Time now)
{
    constexpr int k_many = 1'000'000; // a small share of a GPU must not be rounded to nothing
    const std::chrono::milliseconds of_many =
        gpu_time(request.gpus, seconds{k_many}) * request.nodes;
    if (!request.chain || !request.chain->gpu_time || of_many.count() == 0) {
        return std::nullopt;
    }
    const double spent_a_second =
        static_cast<double>(of_many.count()) / (1000.0 * static_cast<double>(k_many));
    const auto whole = std::chrono::duration<double>(*request.chain->gpu_time) / spent_a_second;
    return std::chrono::duration_cast<seconds>(whole) - time_used(links, now);
}

Verdict by_kind(const Chain& chain, const Links& links)
{
    switch (kind_of(links.back())) {
    case Kind::over:
        return over(links.back(), "");
    case Kind::planned:
        return after_planned(chain, links);
    case Kind::preempted:
        return on(Restart::preempt, "a job of higher priority took its place");
    case Kind::node:
        return after_node_failure(links);
    case Kind::crash:
        return after_crash(links);
    }
    return {};
}

} // namespace

std::string_view word(Restart restart)
{
    return k_restarts.at(static_cast<std::size_t>(restart));
}

bool is_after_notice(Time modified, const std::optional<Time>& noticed_at)
{
    return noticed_at && modified + 1s >= *noticed_at;
}

std::optional<Time> end_of_link(const Event& event)
{
    constexpr std::uint64_t k_latest = std::uint64_t{1} << 36; // some two thousand years
    return event.to && *event.to < k_latest ? std::optional(Time(seconds(*event.to)))
                                            : std::nullopt;
}

LinkPast link_past(LinkNumber link, const std::vector<Event>& journal)
{
    LinkPast past;
    past.link = link;
    for (const Event& event : journal) {
        switch (event.kind) {
        case Event::Kind::supervisor_started:
            past.started_at = past.started_at.value_or(event.at);
            past.host = event.host.value_or(past.host);
            break;
        case Event::Kind::noticed:
            past.noticed_at = past.noticed_at.value_or(event.at);
            past.preempted = past.preempted || event.detail == "preempted";
            break;
        case Event::Kind::checkpoint:
            past.checkpoint = event.detail.value_or("");
            past.saved_after_notice =
                past.saved_after_notice || is_after_notice(event.at, past.noticed_at);
            break;
        case Event::Kind::ended:
            past.ending = Ending{event.status.value_or(static_cast<int>(ExitStatus::lost)),
                                 event.cause.value_or(Cause::lost), event.detail.value_or(""),
                                 event.at, event.continues};
            break;
        default:
            break;
        }
    }
    return past;
}

std::optional<Ending> ending_before(const std::vector<Event>& journal)
{
    for (const Event& event : journal) {
        if (event.kind == Event::Kind::resumed && event.cause) {
            return Ending{event.status.value_or(static_cast<int>(ExitStatus::lost)), *event.cause,
                          "as recorded by the next link", event.at, true};
        }
    }
    return std::nullopt;
}

Verdict decide_next(const Request& request, const std::vector<LinkPast>& links, Time now)
{
    if (links.empty()) {
        return on(Restart::first, "");
    }
    const LinkPast& last = links.back();
    if (!last.ending) {
        Verdict verdict;
        verdict.why = fmt::format("how link {} ended is not yet known", last.link.value);
        return verdict;
    }
    if (!request.chain) {
        return over(last, "");
    }
    Verdict verdict = by_kind(*request.chain, links);
    if (verdict.decision == Verdict::Decision::next_link) {
        if (const auto what = why_no_link(request, links, now)) {
            return used_up(last, *what);
        }
    }
    return verdict;
}

std::vector<std::string> failed_nodes(const Links& links)
{
    std::vector<std::string> nodes;
    for (auto link = begin_of_count(links); link != links.end(); ++link) {
        const bool failed =
            link->ending && link->ending->cause == Cause::node_failed && !link->host.empty();
        if (failed && std::find(nodes.begin(), nodes.end(), link->host) == nodes.end()) {
            nodes.push_back(link->host);
        }
    }
    return nodes;
}

seconds time_used(const Links& links, Time now)
{
    seconds used{0};
    for (const LinkPast& link : links) {
        if (link.started_at) {
            const Time end = link.ending ? link.ending->at : now;
            used +=
                std::max(seconds{0}, std::chrono::duration_cast<seconds>(end - *link.started_at));
        }
    }
    return used;
}

std::optional<std::string> why_no_link(const Request& request, const Links& links, Time now)
{
    const Chain& chain = *request.chain;
    if (chain.max_links && static_cast<int>(links.size()) >= *chain.max_links) {
        return fmt::format("its {} links are used up (--max-links)", *chain.max_links);
    }
    if (next_length(request, links, now) >= k_shortest_link) {
        return std::nullopt;
    }
    if (chain.until && now >= *chain.until - k_shortest_link) {
        return "its end date is reached (--until)";
    }
    const auto gpu_time = gpu_time_left(request, links, now);
    return gpu_time && *gpu_time < k_shortest_link
               ? "its GPU-hours are used up (--gpu-hours)"
               : fmt::format("its time of {} is used up", to_text(request.walltime));
}

seconds length_of(const Chain& chain, LinkNumber link)
{
    return link.value == 1 && chain.first.count() > 0 ? chain.first : chain.link;
}

seconds time_left(const Request& request, const Links& links, Time now)
{
    seconds left = seconds(request.walltime) - time_used(links, now);
    if (request.chain && request.chain->until) {
        left = std::min(left, std::chrono::duration_cast<seconds>(*request.chain->until - now));
    }
    if (const auto gpu_time = gpu_time_left(request, links, now)) {
        left = std::min(left, *gpu_time);
    }
    return std::max(seconds{0}, left);
}

seconds next_length(const Request& request, const Links& links, Time now)
{
    const seconds left = time_left(request, links, now);
    if (!request.chain) {
        return left;
    }
    const auto next = links.empty() ? LinkNumber{1} : LinkNumber{links.back().link.value + 1};
    return std::min(length_of(*request.chain, next), left);
}

std::optional<int> expected_links(const Request& request, const Links& links, Time now)
{
    const int count = std::max<int>(1, static_cast<int>(links.size()));
    if (request.chain && request.chain->first.count() > 0) {
        return std::nullopt;
    }
    if (!request.chain || request.chain->link.count() <= 0) {
        return count;
    }
    const seconds left = std::max(seconds{0}, seconds(request.walltime) - time_used(links, now));
    const seconds open = !links.empty() && links.back().ending ? seconds{0} : request.chain->link;
    // The newest link's remaining time is part of `left`.
    const auto spent = links.empty() || !links.back().started_at || links.back().ending
                           ? seconds{0}
                           : std::chrono::duration_cast<seconds>(now - *links.back().started_at);
    const seconds beyond = left - std::max(seconds{0}, open - spent);
    const auto more = beyond.count() <= 0 ? 0
                                          : (beyond.count() + request.chain->link.count() - 1) /
                                                request.chain->link.count();
    int expected = count + static_cast<int>(more);
    if (request.chain->max_links) {
        expected = std::min(expected, std::max(count, *request.chain->max_links));
    }
    return expected;
}

seconds notice_lead(seconds length, const Links& links)
{
    constexpr seconds k_spare = 4s;
    const seconds most = length / 2;
    std::optional<seconds> longest;
    bool was_late = false;
    for (const LinkPast& link : links) {
        if (!link.noticed_at || !link.ending) {
            continue;
        }
        const auto took = std::chrono::ceil<seconds>(link.ending->at - *link.noticed_at);
        longest = std::max(longest.value_or(seconds{0}), took);
        was_late = !link.saved_after_notice;
    }
    if (!longest) {
        return std::min(std::clamp<seconds>(length / 20, 10s, 300s), most);
    }
    // Late: the program was killed at the limit, so it would have needed more time than it had.
    const seconds lead = was_late ? *longest * 3 / 2 : *longest + *longest / 10;
    return std::min(lead + k_spare, most);
}

} // namespace gpuq
