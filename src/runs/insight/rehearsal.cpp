// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/rehearsal.h"

#include "core/size.h"
#include "ports/accounting.h"
#include "runs/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Level = Finding::Level;
using Links = std::vector<RehearsedLink>;

/// Delay after a checkpoint, so that the program is killed while it computes and not while it
/// saves.
constexpr auto k_moment = 2s;
constexpr std::chrono::days k_shortest_watch{7};
/// Assumed time between failures of a node, if there is no rate.
constexpr std::chrono::days k_guess{30};
constexpr const char* k_see = "man gpuq-chain describes how";

std::string text_of(milliseconds time)
{
    const double length = std::chrono::duration<double>(time).count();
    if (length < 10) {
        return fmt::format("{:.1f} s", length);
    }
    if (length < 120) {
        return fmt::format("{:.0f} s", length);
    }
    if (length < 7200) {
        return fmt::format("{:.0f} min", length / 60);
    }
    return length < 2 * 86400 ? fmt::format("{:.0f} h", length / 3600)
                              : fmt::format("{:.0f} days", length / 86400);
}

milliseconds between(Time from, Time to)
{
    return std::chrono::round<milliseconds>(std::max(to - from, Time::duration{0}));
}

std::string number_text(const RehearsedLink::Save& save)
{
    return save.step ? fmt::format("{} (step {})", save.path, *save.step) : save.path;
}

const RehearsedLink* link_at(const Links& links, std::size_t index)
{
    return index < links.size() ? &links[index] : nullptr;
}

/// The first checkpoint made after the notice.
const RehearsedLink::Save* saved_when_notified(const RehearsedLink& link)
{
    const auto found =
        std::find_if(link.saves.begin(), link.saves.end(), [&](const RehearsedLink::Save& save) {
            return link.noticed_at && save.at + 1s >= *link.noticed_at;
        });
    return found == link.saves.end() ? nullptr : &*found;
}

const RehearsedLink::Save* save_at(const Links& links, const std::string& path)
{
    for (auto link = links.rbegin(); link != links.rend(); ++link) {
        for (auto save = link->saves.rbegin(); save != link->saves.rend(); ++save) {
            if (save->path == path) {
                return &*save;
            }
        }
    }
    return nullptr;
}

/// True if some process handled the signal, or the program checks the stop file.
bool was_notified(const Request& request, const RehearsedLink& link)
{
    return link.notified > 0 || (request.chain && request.chain->aware);
}

std::optional<milliseconds> usual_interval(const Links& links)
{
    std::vector<milliseconds> all;
    for (const RehearsedLink& link : links) {
        for (std::size_t i = 1; i < link.saves.size(); ++i) {
            const bool by_itself = !link.noticed_at || link.saves[i].at < *link.noticed_at;
            if (by_itself) {
                all.push_back(between(link.saves[i - 1].at, link.saves[i].at));
            }
        }
    }
    // With at most one such checkpoint per link, use the time from the program's start to it.
    for (const RehearsedLink& link : links) {
        const bool by_itself = !link.saves.empty() && link.started_at &&
                               (!link.noticed_at || link.saves.front().at < *link.noticed_at);
        if (all.empty() && by_itself) {
            all.push_back(between(*link.started_at, link.saves.front().at));
        }
    }
    if (all.empty()) {
        return std::nullopt;
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

enum class Continued { yes, no, unknown };

/// Whether a link continued where the previous one stopped: according to the numbers of its
/// checkpoints if they have any, else according to its output.
Continued has_continued(const Links& links, std::size_t index, std::string& text)
{
    const RehearsedLink& link = links[index];
    const auto* const from = save_at(links, link.resumed_from);
    const auto* const first = link.saves.empty() ? nullptr : &link.saves.front();
    if (from != nullptr && first != nullptr && from->step && first->step) {
        text = fmt::format("it resumed at step {}, and its first checkpoint is of step {}",
                           *from->step, *first->step);
        return *first->step > *from->step ? Continued::yes : Continued::no;
    }
    const auto& begin = links.front().first;
    const auto& before = links[index - 1].last;
    if (!begin || !before || !link.first || link.first->unit != before->unit ||
        begin->unit != before->unit) {
        return Continued::unknown;
    }
    text = fmt::format("the output before it ended with {} {}, and continued with {} {}",
                       before->unit, before->done, link.first->unit, link.first->done);
    if (link.first->done > begin->done) {
        return Continued::yes;
    }
    return before->done > begin->done + 1 ? Continued::no : Continued::unknown;
}

Finding how_it_starts(const RehearsedLink* first)
{
    if (first == nullptr || !first->started_at) {
        const std::string why = first != nullptr && first->ending ? first->ending->detail : "";
        return {"start", Level::problem,
                "the program was not started" + (why.empty() ? "" : ": " + why), ""};
    }
    if (first->ending && !first->noticed_at) {
        return {"start", Level::problem,
                fmt::format("the program exited after {} with status {}, before the first test",
                            text_of(between(*first->started_at, first->ending->at)),
                            first->ending->status),
                first->ending->status == 0 ? "Rehearse with a training that takes longer" : ""};
    }
    return {"start", Level::ok, "the program started", ""};
}

Finding notification_finding(const Request& request, const RehearsedLink& link)
{
    const auto* const save = saved_when_notified(link);
    const bool notified = was_notified(request, link);
    if (save == nullptr) {
        return {"notice", Level::problem,
                notified
                    ? "the program was notified to save, but wrote no complete checkpoint"
                    : "no process handles the notice to save, and the program wrote no complete "
                      "checkpoint on its own",
                fmt::format("Save on SIGUSR1, or when the file GPUQ_STOP_FILE appears; {}. If the "
                            "checkpoints are elsewhere: --checkpoint 'PATTERN'",
                            k_see)};
    }
    const std::string took = text_of(between(*link.noticed_at, save->at));
    if (!notified) {
        return {
            "notice", Level::warning,
            fmt::format("no process handles the notice to save: the program was ended after "
                        "its next checkpoint, {} later",
                        took),
            fmt::format("Without a notice a link ends after the last checkpoint that fits into its "
                        "time; {} to handle one",
                        k_see)};
    }
    if (link.ending && !link.ending->continues) {
        return {
            "notice", Level::problem,
            fmt::format("the program saved {} after the notice, and then the run ended: {}", took,
                        link.ending->detail.empty() ? fmt::format("status {}", link.ending->status)
                                                    : link.ending->detail),
            "Exit with status 85 after a notice, so that the run continues"};
    }
    return {"notice", Level::ok,
            fmt::format("the program saved {} after the notice and exited", took), ""};
}

Finding saves_finding(const Links& links)
{
    const RehearsedLink::Save* newest = nullptr;
    for (const RehearsedLink& link : links) {
        newest = link.saves.empty() ? newest : &link.saves.back();
    }
    return {"checkpoint", Level::ok,
            fmt::format("{} is complete, {}", number_text(*newest), bytes_text(newest->bytes)), ""};
}

Finding how_it_resumes(const Links& links, std::size_t index, const std::string& check)
{
    const RehearsedLink* const link = link_at(links, index);
    const std::string after = check == "kill" ? "after SIGKILL " : "";
    if (link == nullptr || !link->started_at) {
        const RehearsedLink& before = links[index - 1];
        const std::string why = before.ending ? before.ending->detail : "";
        return {check, Level::problem,
                fmt::format("{}link {} did not start{}", after, index + 1,
                            why.empty() ? "" : ": " + why),
                ""};
    }
    if (link->resumed_from.empty()) {
        return {
            check, Level::problem,
            fmt::format("{}link {} found no complete checkpoint to resume from", after, index + 1),
            ""};
    }
    if (link->ending && !link->noticed_at && !link->killed_at && link->ending->status != 0) {
        return {
            check, Level::problem,
            fmt::format("{}link {} was given {}, and the program exited with status {} after {}",
                        after, index + 1, link->resumed_from, link->ending->status,
                        text_of(between(*link->started_at, link->ending->at))),
            "Its output shows why: gpuq logs last"};
    }
    std::string text;
    switch (has_continued(links, index, text)) {
    case Continued::yes:
        return {check, Level::ok,
                fmt::format("{}link {} continued from {}: {}", after, index + 1, link->resumed_from,
                            text),
                ""};
    case Continued::no:
        return {check, Level::problem,
                fmt::format("{}link {} was given {} and started from the beginning: {}", after,
                            index + 1, link->resumed_from, text),
                "Load the checkpoint named in GPUQ_RESUME_FROM, or pass it as an argument: "
                "--resume-args '--resume {}'"};
    case Continued::unknown:
        break;
    }
    return {
        check, Level::unknown,
        fmt::format("{}link {} was given {}; whether the program continued from it is not known",
                    after, index + 1, link->resumed_from),
        "Put a step number in the names of the checkpoints (step-120.pt), or print lines such "
        "as `epoch 3`: gpuq compares them"};
}

/// Judges the work lost by failures, and how often to save.
void check_interval(const Request& request, const std::optional<FailureRate>& rate,
                    const std::string& silence, RehearsalReport& report)
{
    if (report.lost) {
        const bool saves = report.interval.has_value();
        const std::string most = saves ? text_of(*report.interval + report.save.value_or(0ms))
                                       : "everything since the link started";
        report.findings.push_back(
            {"loss", saves ? Level::ok : Level::warning,
             fmt::format(
                 "this SIGKILL lost {} of work; a kill at any other moment loses at most {}",
                 text_of(*report.lost), most),
             saves ? "" : "Save at regular intervals, not only after a notice"});
    }
    if (!report.save) {
        report.findings.push_back({"interval", Level::unknown,
                                   "the best interval between checkpoints is not known: no "
                                   "checkpoint was seen to follow a notice, so the time of a save "
                                   "could not be measured",
                                   ""});
        return;
    }
    const auto of_node = rate ? rate->node_time / std::max(rate->failures, 1)
                              : std::chrono::duration_cast<seconds>(k_guess);
    const seconds of_run = of_node / std::max(request.nodes, 1);
    const seconds best = best_interval(*report.save, of_run);
    std::string basis;
    if (!rate) {
        basis = fmt::format("if a node fails every {} ({})", text_of(k_guess), silence);
    } else {
        basis = fmt::format("{} of queue {} failed in {} of node time",
                            rate->failures == 0   ? "no node"
                            : rate->failures == 1 ? "one node"
                                                  : fmt::format("{} nodes", rate->failures),
                            request.queue, text_of(rate->node_time));
        report.between_failures = of_run;
    }
    report.advised = best;
    const bool often = report.interval && *report.interval < best;
    report.findings.push_back(
        {"interval", rate ? Level::ok : Level::unknown,
         fmt::format("save about every {}: a save takes {}, and {}{}", text_of(best),
                     text_of(*report.save), basis,
                     report.interval
                         ? fmt::format("; the program now saves every {}, {} than needed",
                                       text_of(*report.interval),
                                       often ? "more often" : "less often")
                         : ""),
         ""});
}

} // namespace

std::string to_line(const RehearsalRequest& request)
{
    return fmt::format("{} {}\n", request.link.value,
                       request.act == RehearsalRequest::Act::notice ? "notice" : "kill");
}

std::optional<RehearsalRequest> rehearsal_request_in(std::string_view line)
{
    for (const auto act : {RehearsalRequest::Act::notice, RehearsalRequest::Act::kill}) {
        int link = 0;
        if (std::sscanf(std::string(line).c_str(), "%9d", &link) == 1 && link > 0 &&
            line == to_line({LinkNumber{link}, act})) {
            return RehearsalRequest{LinkNumber{link}, act};
        }
    }
    return std::nullopt;
}

RehearsedLink rehearsed_link(const std::vector<Event>& journal)
{
    const LinkPast past = link_past(LinkNumber{}, journal);
    RehearsedLink link;
    link.noticed_at = past.noticed_at;
    link.ending = past.ending;
    for (const Event& event : journal) {
        switch (event.kind) {
        case Event::Kind::program_started:
            link.started_at = link.started_at.value_or(event.at);
            break;
        case Event::Kind::noticed:
            link.notified = std::max(link.notified, event.to.value_or(0));
            break;
        case Event::Kind::signalled:
            if (event.detail && event.detail->starts_with("KILL")) {
                link.killed_at = link.killed_at.value_or(event.at);
            }
            break;
        case Event::Kind::checkpoint:
            link.saves.push_back(
                {event.at, event.detail.value_or(""), event.from, event.to.value_or(0)});
            break;
        case Event::Kind::resumed:
            link.resumed_from = event.detail.value_or("");
            break;
        default:
            break;
        }
    }
    return link;
}

RehearsalAct next_act(const Links& links, Time now, seconds warm_up)
{
    if (links.empty()) {
        return RehearsalAct::wait;
    }
    const RehearsedLink& link = links.back();
    if (link.ending) {
        return link.ending->continues ? RehearsalAct::wait : RehearsalAct::over;
    }
    if (!link.started_at || link.noticed_at || link.killed_at) {
        return RehearsalAct::wait;
    }
    const RehearsedLink& first = links.front();
    const auto patience = links.size() > 1 && first.noticed_at
                              ? std::max(between(*first.started_at, *first.noticed_at),
                                         std::chrono::duration_cast<milliseconds>(k_moment))
                              : milliseconds(warm_up);
    const bool saved = !link.saves.empty() && now >= link.saves.back().at + k_moment;
    if (!saved && now < *link.started_at + patience) {
        return RehearsalAct::wait;
    }
    switch (links.size()) {
    case 1:
        return RehearsalAct::notice;
    case 2:
        return RehearsalAct::kill;
    default:
        return RehearsalAct::stop;
    }
}

std::optional<FailureRate> failure_rate(const NodeHistory& history,
                                        const std::vector<std::string>& nodes, Time now)
{
    if (nodes.empty() || now - history.since < k_shortest_watch) {
        return std::nullopt;
    }
    FailureRate rate;
    rate.node_time = std::chrono::duration_cast<seconds>(now - history.since) *
                     static_cast<std::int64_t>(nodes.size());
    rate.failures = static_cast<int>(std::count_if(
        history.failures.begin(), history.failures.end(), [&](const NodeHistory::Failure& failure) {
            return std::find(nodes.begin(), nodes.end(), failure.node) != nodes.end();
        }));
    return rate;
}

seconds best_interval(milliseconds save, seconds between_failures)
{
    const double cost = std::chrono::duration<double>(save).count();
    const double mean = std::chrono::duration<double>(between_failures).count();
    return seconds(static_cast<std::int64_t>(std::lround(std::sqrt(2 * cost * mean))));
}

RehearsalReport evaluate_rehearsal(const Request& request, const Links& links,
                                   const std::optional<FailureRate>& rate,
                                   const std::string& silence)
{
    RehearsalReport report;
    report.findings.push_back(how_it_starts(link_at(links, 0)));
    if (report.findings.back().level == Level::problem) {
        return report;
    }
    const RehearsedLink& first = links.front();
    report.findings.push_back(notification_finding(request, first));
    if (const auto* const save = saved_when_notified(first);
        save != nullptr && was_notified(request, first)) {
        report.save = between(*first.noticed_at, save->at);
    }
    report.interval = usual_interval(links);
    if (!first.ending || !first.ending->continues || saved_when_notified(first) == nullptr) {
        return report;
    }
    report.findings.push_back(saves_finding(links));
    report.findings.push_back(how_it_resumes(links, 1, "resume"));
    const RehearsedLink* const second = link_at(links, 1);
    if (second == nullptr || !second->started_at) {
        return report;
    }
    report.gap = between(first.ending->at, *second->started_at);
    if (second->killed_at) {
        const Time kept = second->saves.empty() ? *second->started_at : second->saves.back().at;
        report.lost = between(kept, *second->killed_at);
        const Finding killed = how_it_resumes(links, 2, "kill");
        Finding& resumed = report.findings.back();
        if (resumed.level == Level::unknown && killed.level == Level::ok) {
            resumed = {"resume", Level::ok,
                       fmt::format("link 2 was given {}; the next line shows that the program can "
                                   "resume from a checkpoint",
                                   second->resumed_from),
                       ""};
        }
        report.findings.push_back(killed);
    } else {
        report.findings.push_back(
            {"kill", Level::unknown, "the program exited before it could be killed", ""});
    }
    check_interval(request, rate, silence, report);
    return report;
}

} // namespace gpuq
