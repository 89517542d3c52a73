// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/timeline.h"

#include "core/pending_reason.h"
#include "runs/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace gpuq {
namespace {

using Kind = TimelineEntry::Kind;
using Extent = TimelineEntry::Extent;

/// A link of the run, from its own records, or else from the status of the run.
struct Life {
    LinkNumber link;
    std::optional<LinkJob> job;
    std::optional<Time> submitted_at, started_at;
    std::optional<Ending> ending;
    std::string host;
    bool preempted = false;
    std::optional<Time> noticed_at;
    bool is_current = false;
    const LinkRecords* records = nullptr; ///< null: none
};

/// The status of a run knows more about its current link than the history of the links.
void add_status(Life& life, const RunStatus& status)
{
    life.job = life.job ? life.job : status.job;
    life.started_at = life.started_at ? life.started_at : status.started_at;
    life.host = life.host.empty() ? status.host : life.host;
    if (!life.ending && status.state == RunState::ended) {
        life.ending = status.ending;
    }
}

Life life_of(const LinkPast& past, const LinkRecords* records, const RunStatus& status)
{
    Life life{past.link};
    life.started_at = past.started_at;
    life.ending = past.ending;
    life.host = past.host;
    life.preempted = past.preempted;
    life.noticed_at = past.noticed_at;
    life.records = records;
    life.job = records != nullptr ? records->job : std::nullopt;
    life.is_current = past.link == status.link;
    if (life.is_current) {
        add_status(life, status);
    }
    if (past.link == LinkNumber{1} && status.run) {
        life.submitted_at = status.run->submitted_at;
    } else if (life.job) {
        life.submitted_at = life.job->submitted_at;
    }
    return life;
}

std::vector<Life> lives_of(const RunStatus& status, const std::vector<LinkRecords>& links)
{
    std::map<LinkNumber, LinkPast> pasts;
    std::map<LinkNumber, const LinkRecords*> records;
    for (const LinkPast& past : status.links) {
        pasts.emplace(past.link, past);
    }
    for (const LinkRecords& link : links) {
        records.emplace(link.link, &link);
        if (!link.journal.empty() || !pasts.contains(link.link)) {
            pasts.insert_or_assign(link.link, link_past(link.link, link.journal));
        }
    }
    LinkPast current;
    current.link = status.link;
    pasts.emplace(status.link, current);
    std::vector<Life> lives;
    for (const auto& [link, past] : pasts) {
        const auto found = records.find(link);
        if (link <= status.link) {
            lives.push_back(
                life_of(past, found == records.end() ? nullptr : found->second, status));
        }
    }
    return lives;
}

/// A span, or a part of the run that has no known end.
TimelineEntry part(Kind kind, const Life& life, Time from, std::optional<Time> until, bool ongoing)
{
    const Extent extent = until ? Extent::span : ongoing ? Extent::ongoing : Extent::end_unknown;
    return {kind, life.link, extent, from, until ? std::optional(std::max(from, *until)) : until,
            {}};
}

std::string job_text(const Life& life)
{
    return life.job ? fmt::format("job {}", life.job->job.value) : std::string("a job");
}

/// When the link began to wait for its job only. The job of a next link is submitted while the
/// previous link runs.
std::optional<Time> waits_since(const Life& life, const Life* before)
{
    if (life.link == LinkNumber{1} || !life.submitted_at) {
        return life.submitted_at;
    }
    const bool is_known = before != nullptr && before->link.value + 1 == life.link.value &&
                          before->ending.has_value();
    return is_known ? std::optional(std::max(*life.submitted_at, before->ending->at))
                    : std::nullopt;
}

class Builder {
public:
    Builder(const RunStatus& status, const EventText& text, Time now)
        : m_status(status)
        , m_text(text)
        , m_now(now)
    {
    }

    void add(const Life& life, const Life* before)
    {
        add_waiting(life, before);
        add_running(life);
        if (life.records != nullptr) {
            for (const Event& event : life.records->journal) {
                add_event(life, event);
            }
            add_idle(life);
            add_credentials(life);
        }
        add_requests(life);
        add_end(life);
    }

    std::vector<TimelineEntry> take() { return std::move(m_entries); }

private:
    void add_part(TimelineEntry entry, std::string text)
    {
        entry.text = std::move(text);
        m_entries.push_back(std::move(entry));
    }

    void add_moment(Kind kind, const Life& life, Time at, std::string text)
    {
        m_entries.push_back({kind, life.link, Extent::moment, at, {}, std::move(text)});
    }

    void add_waiting(const Life& life, const Life* before)
    {
        const auto since = waits_since(life, before);
        if (!since || (life.started_at && *life.started_at <= *since)) {
            return;
        }
        const bool ongoing = life.is_current && (m_status.state == RunState::waiting ||
                                                 m_status.state == RunState::submitting);
        const auto until = life.started_at ? life.started_at
                           : life.ending   ? std::optional(life.ending->at)
                                           : std::nullopt;
        const std::string reason =
            ongoing && !until && !m_status.reason.empty()
                ? ": " + pending_reason_text(m_status.reason, gpus_asked(m_status))
                : "";
        add_part(part(Kind::waiting, life, *since, until, ongoing),
                 job_text(life) + " waiting" + reason);
    }

    void add_running(const Life& life)
    {
        if (!life.started_at) {
            return;
        }
        const bool ongoing = life.is_current && m_status.state == RunState::running;
        const auto until = life.ending ? std::optional(life.ending->at) : std::nullopt;
        add_part(part(Kind::running, life, *life.started_at, until, ongoing),
                 life.host.empty() ? job_text(life)
                                   : fmt::format("{} on {}", job_text(life), life.host));
    }

    void add_event(const Life& life, const Event& event)
    {
        switch (event.kind) {
        case Event::Kind::supervisor_started: // the begin of `running`
        case Event::Kind::ended:              // add_end()
            return;
        case Event::Kind::warned:
        case Event::Kind::limit_changed:
        case Event::Kind::signalled:
        case Event::Kind::stop_asked:
        case Event::Kind::noticed:
        case Event::Kind::notice_failed:
            return add_moment(Kind::notice, life, event.at, m_text(event));
        case Event::Kind::checkpoint:
            return add_moment(Kind::checkpoint, life, event.at, m_text(event));
        case Event::Kind::resumed:
        case Event::Kind::next_failed:
            return add_moment(Kind::retry, life, event.at, m_text(event));
        case Event::Kind::credentials:
            return add_moment(Kind::credentials, life, event.at, m_text(event));
        case Event::Kind::memory_kill:
        case Event::Kind::memory_kill_nearby:
            return add_moment(Kind::memory, life, event.at, m_text(event));
        case Event::Kind::program_started:
        case Event::Kind::log_lost:
        case Event::Kind::code_changed:
        case Event::Kind::next_submitted:
        case Event::Kind::other_user:
            break;
        }
        add_moment(Kind::other, life, event.at, m_text(event));
    }

    /// The evidence ends with the finding. A run that works again is reported as such, so a warned
    /// one is idle as long as it runs.
    void add_idle(const Life& life)
    {
        const auto& finding = life.records->idle;
        if (!finding) {
            return;
        }
        std::string text = describe(*finding, std::nullopt);
        if (finding->state == IdleFinding::State::works) {
            return add_moment(Kind::idle, life, finding->at, std::move(text));
        }
        const Time since =
            finding->at - std::max(std::chrono::milliseconds(0),
                                   finding->evidence.at - finding->evidence.idle_since);
        const bool ongoing = finding->state == IdleFinding::State::warned && life.is_current &&
                             m_status.state == RunState::running;
        const auto until = ongoing ? std::nullopt : std::optional(finding->at);
        add_part(part(Kind::idle, life, since, until, ongoing), std::move(text));
    }

    /// Problems are in the journal.
    void add_credentials(const Life& life)
    {
        const auto& state = life.records->credentials;
        if (!state) {
            return;
        }
        if (state->ticket && state->renewals > 0) {
            add_during(life, state->ticket->start,
                       fmt::format("ticket renewed, renewal {}", state->renewals));
        }
        if (state->ticket) {
            add_during(life, state->ticket->end, "ticket expired");
        }
        if (state->token_got) {
            add_during(life, *state->token_got, "got a token");
        }
        if (state->token && state->token->expires) {
            add_during(life, *state->token->expires, "token expired");
        }
    }

    /// Only if the link was running at that time.
    void add_during(const Life& life, Time at, std::string text)
    {
        const bool is_over = life.ending ? at > life.ending->at : at > m_now;
        if (life.started_at && *life.started_at <= at && !is_over) {
            add_moment(Kind::credentials, life, at, std::move(text));
        }
    }

    bool has(const Life& life, Event::Kind kind) const
    {
        return life.records != nullptr &&
               std::any_of(life.records->journal.begin(), life.records->journal.end(),
                           [&](const Event& event) { return event.kind == kind; });
    }

    /// A stop request that the supervisor has not seen yet, and the notice to a link whose journal
    /// was not read.
    void add_requests(const Life& life)
    {
        if (life.is_current && m_status.stop && !has(life, Event::Kind::stop_asked)) {
            Event asked;
            asked.kind = Event::Kind::stop_asked;
            asked.at = m_status.stop->at;
            asked.detail = m_status.stop->by;
            add_event(life, asked);
        }
        if (life.noticed_at && !has(life, Event::Kind::noticed)) {
            Event noticed;
            noticed.kind = Event::Kind::noticed;
            noticed.at = *life.noticed_at;
            noticed.detail =
                life.preempted ? std::optional<std::string>("preempted") : std::nullopt;
            add_event(life, noticed);
        }
    }

    void add_end(const Life& life)
    {
        if (!life.ending) {
            return;
        }
        Event ended;
        ended.kind = Event::Kind::ended;
        ended.at = life.ending->at;
        ended.status = life.ending->status;
        ended.cause = life.ending->cause;
        ended.detail = life.ending->detail;
        ended.continues = life.ending->continues;
        add_moment(Kind::ended, life, ended.at, m_text(ended));
    }

    const RunStatus& m_status;
    const EventText& m_text;
    Time m_now;
    std::vector<TimelineEntry> m_entries;
};

/// The higher, the sooner an entry is left out.
int dispensability(const TimelineEntry& entry)
{
    if (entry.kind == Kind::checkpoint) {
        return 2;
    }
    return entry.extent == Extent::moment && entry.kind != Kind::ended ? 1 : 0;
}

/// Takes entries in the order of their times.
void limit(Timeline& timeline, std::size_t most)
{
    auto& entries = timeline.entries;
    if (entries.size() <= most) {
        return;
    }
    timeline.left_out = entries.size() - most;
    std::vector<std::size_t> order(entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
        return dispensability(entries[one]) > dispensability(entries[other]);
    });
    order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(timeline.left_out));
    std::sort(order.begin(), order.end());
    std::vector<TimelineEntry> kept;
    kept.reserve(most);
    for (const std::size_t index : order) {
        kept.push_back(std::move(entries[index]));
    }
    entries = std::move(kept);
}

} // namespace

Timeline timeline_of(const RunStatus& status, const std::vector<LinkRecords>& links,
                     const EventText& text, Time now, std::size_t most)
{
    Builder builder(status, text, now);
    const Life* before = nullptr;
    const std::vector<Life> lives = lives_of(status, links);
    for (const Life& life : lives) {
        builder.add(life, before);
        before = &life;
    }
    Timeline timeline{now, now, builder.take()};
    auto& entries = timeline.entries;
    std::stable_sort(
        entries.begin(), entries.end(),
        [](const TimelineEntry& one, const TimelineEntry& other) { return one.from < other.from; });
    if (!entries.empty()) {
        timeline.begin = entries.front().from;
        timeline.end = status.state == RunState::ended ? timeline.begin : now;
        for (const TimelineEntry& entry : entries) {
            timeline.end = std::max({timeline.end, entry.from, entry.until.value_or(entry.from)});
        }
    }
    limit(timeline, most);
    return timeline;
}

} // namespace gpuq
