// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/timeline.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "runs/events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using EntryKind = TimelineEntry::Kind;
using Extent = TimelineEntry::Extent;

const Time k_submitted{1'795'000'000s};

std::string event_text(const Event& event)
{
    return fmt::format("{}{}", event.kind == Event::Kind::ended ? word(*event.cause) : "",
                       event.detail.value_or(""));
}

Event started(Time at, const std::string& host)
{
    Event made = event(Event::Kind::supervisor_started, at);
    made.host = host;
    return made;
}

Event ended(Time at, Cause cause, bool continues = false)
{
    Event made = event(Event::Kind::ended, at);
    made.status = 0;
    made.cause = cause;
    made.continues = continues;
    return made;
}

/// A run submitted at k_submitted, in this state in its newest link.
RunStatus status(RunState state, int link = 1)
{
    RunStatus made{*RunKey::parse("20261123T072953.601Z-9ace793821375167")};
    made.run = Run{made.key};
    made.run->submitted_at = k_submitted;
    made.state = state;
    made.link = LinkNumber{link};
    return made;
}

LinkRecords link(int number, Time submitted, std::vector<Event> journal)
{
    LinkRecords records;
    records.link = LinkNumber{number};
    records.job =
        LinkJob{"centre", JobId{static_cast<std::uint32_t>(40 + number)}, submitted, true};
    records.journal = std::move(journal);
    return records;
}

Timeline timeline(const RunStatus& status, const std::vector<LinkRecords>& links, Time now,
                  std::size_t most = 1000)
{
    return timeline_of(status, links, event_text, now, most);
}

/// `link 1: 0 to 60: job 41 waiting`, in seconds since k_submitted.
std::vector<std::string> lines(const Timeline& timeline)
{
    std::vector<std::string> lines;
    for (const TimelineEntry& entry : timeline.entries) {
        const auto seconds = [](Time at) { return (at - k_submitted) / 1s; };
        const std::string until = entry.extent == Extent::span
                                      ? fmt::format(" to {}", seconds(*entry.until))
                                  : entry.extent == Extent::ongoing     ? " to now"
                                  : entry.extent == Extent::end_unknown ? " to ?"
                                                                        : "";
        lines.push_back(
            fmt::format("{}: {}{}: {}", entry.link.value, seconds(entry.from), until, entry.text));
    }
    return lines;
}

TEST(Timeline, OfAWaitingRunIsOngoing)
{
    RunStatus waiting = status(RunState::waiting);
    waiting.job = LinkJob{"centre", JobId{41}, k_submitted + 1s, true};
    const Timeline made = timeline(waiting, {}, k_submitted + 60s);
    EXPECT_THAT(lines(made), ElementsAre("1: 0 to now: job 41 waiting"));
    EXPECT_EQ(made.begin, k_submitted);
    EXPECT_EQ(made.end, k_submitted + 60s);
    waiting.reason = "Priority";
    EXPECT_THAT(lines(timeline(waiting, {}, k_submitted)),
                ElementsAre("1: 0 to now: job 41 waiting: others are before you"));
}

TEST(Timeline, OfARunThatWasCancelledInTheQueueHasNoStart)
{
    RunStatus cancelled = status(RunState::ended);
    cancelled.ending = Ending{130, Cause::stopped, " by ada", k_submitted + 30s};
    cancelled.stop = StopRequest{"ada@login1", k_submitted + 20s};
    EXPECT_THAT(
        lines(timeline(cancelled, {}, k_submitted + 1h)),
        ElementsAre("1: 0 to 30: a job waiting", "1: 20: ada@login1", "1: 30: stopped by ada"));
}

TEST(Timeline, OfARunningRunHasItsEvents)
{
    RunStatus running = status(RunState::running);
    running.host = "n0";
    running.stop = StopRequest{"ada@login1", k_submitted + 50s};
    const auto records = link(1, k_submitted,
                              {started(k_submitted + 10s, "n0"),
                               event(Event::Kind::checkpoint, k_submitted + 30s, "a.pt"),
                               event(Event::Kind::stop_asked, k_submitted + 51s, "by ada"),
                               event(Event::Kind::memory_kill, k_submitted + 40s, "killed")});
    const Timeline made = timeline(running, {records}, k_submitted + 60s);
    EXPECT_THAT(lines(made), ElementsAre("1: 0 to 10: job 41 waiting", "1: 10 to now: job 41 on n0",
                                         "1: 30: a.pt", "1: 40: killed", "1: 51: by ada"));
    EXPECT_EQ(made.entries[2].kind, EntryKind::checkpoint);
    EXPECT_EQ(made.entries[3].kind, EntryKind::memory);
    EXPECT_EQ(made.entries[4].kind, EntryKind::notice);
    EXPECT_EQ(made.end, k_submitted + 60s);
}

TEST(Timeline, OfAChainWaitsOnlyBetweenItsLinks)
{
    RunStatus over = status(RunState::ended, 2);
    over.ending = Ending{0, Cause::finished, "", k_submitted + 300s};
    const Timeline made =
        timeline(over,
                 {link(1, k_submitted,
                       {started(k_submitted, "n0"),
                        event(Event::Kind::noticed, k_submitted + 90s, "preempted"),
                        ended(k_submitted + 100s, Cause::preempted, /*continues=*/true)}),
                  link(2, k_submitted + 5s,
                       {started(k_submitted + 150s, "n1"),
                        event(Event::Kind::resumed, k_submitted + 151s, "a.pt"),
                        ended(k_submitted + 300s, Cause::finished)})},
                 k_submitted + 1h);
    EXPECT_THAT(lines(made),
                ElementsAre("1: 0 to 100: job 41 on n0", "1: 90: preempted", "1: 100: preempted",
                            "2: 100 to 150: job 42 waiting", "2: 150 to 300: job 42 on n1",
                            "2: 151: a.pt", "2: 300: finished"));
    EXPECT_EQ(made.entries[5].kind, EntryKind::retry);
    EXPECT_EQ(made.end, k_submitted + 300s);
}

TEST(Timeline, OfALinkWithoutRecordsHasWhatTheStatusHas)
{
    RunStatus running = status(RunState::running, 3);
    LinkPast first, second;
    first.started_at = k_submitted + 10s;
    first.noticed_at = k_submitted + 90s;
    first.preempted = true;
    first.host = "n0";
    first.ending = Ending{0, Cause::preempted, "", k_submitted + 100s, true};
    second.link = LinkNumber{2};
    second.started_at = k_submitted + 120s;
    running.links = {first, second};
    running.started_at = k_submitted + 200s;
    EXPECT_THAT(lines(timeline(running, {}, k_submitted + 1h)),
                ElementsAre("1: 0 to 10: a job waiting", "1: 10 to 100: a job on n0",
                            "1: 90: preempted", "1: 100: preempted", "2: 120 to ?: a job",
                            "3: 200 to now: a job"));
}

TEST(Timeline, DoesNotInventTheEndOfAnUnknownRun)
{
    RunStatus unknown = status(RunState::unknown);
    EXPECT_THAT(lines(timeline(unknown, {}, k_submitted + 1h)),
                ElementsAre("1: 0 to ?: a job waiting"));
    unknown.started_at = k_submitted + 5s;
    EXPECT_THAT(lines(timeline(unknown, {}, k_submitted + 1h)),
                ElementsAre("1: 0 to 5: a job waiting", "1: 5 to ?: a job"));
    unknown.run.reset();
    unknown.started_at.reset();
    const Timeline none = timeline(unknown, {}, k_submitted);
    EXPECT_TRUE(none.entries.empty());
    EXPECT_EQ(none.begin, none.end);
}

TEST(Timeline, HasTheTimeWithoutUseOfTheGpus)
{
    RunStatus running = status(RunState::running);
    LinkRecords records = link(1, k_submitted, {started(k_submitted, "n0")});
    records.idle.emplace();
    records.idle->at = k_submitted + 1000s;
    records.idle->evidence.idle_since = 100s;
    records.idle->evidence.at = 800s;
    const auto idle = [&](IdleFinding::State state) {
        records.idle->state = state;
        const Timeline made = timeline(running, {records}, k_submitted + 1100s);
        EXPECT_EQ(made.entries.back().kind, EntryKind::idle);
        TimelineEntry entry = made.entries.back();
        entry.text.clear();
        return entry;
    };
    const LinkNumber one{1};
    EXPECT_EQ(idle(IdleFinding::State::warned),
              (TimelineEntry{EntryKind::idle, one, Extent::ongoing, k_submitted + 300s, {}, ""}));
    EXPECT_EQ(idle(IdleFinding::State::put_off),
              (TimelineEntry{EntryKind::idle, one, Extent::span, k_submitted + 300s,
                             k_submitted + 1000s, ""}));
    EXPECT_EQ(idle(IdleFinding::State::works),
              (TimelineEntry{EntryKind::idle, one, Extent::moment, k_submitted + 1000s, {}, ""}));
}

TEST(Timeline, HasTheTicketOfTheTimeThatTheLinkRan)
{
    RunStatus running = status(RunState::running);
    LinkRecords records = link(1, k_submitted, {started(k_submitted, "n0")});
    records.credentials.emplace();
    CredentialState& state = *records.credentials;
    state.ticket.emplace();
    state.ticket->start = k_submitted + 100s;
    state.ticket->end = k_submitted + 500s;
    state.renewals = 2;
    state.token.emplace();
    state.token->expires = k_submitted + 200s;
    state.token_got = k_submitted - 1s;
    EXPECT_THAT(lines(timeline(running, {records}, k_submitted + 499s)),
                ElementsAre("1: 0 to now: job 41 on n0", "1: 100: ticket renewed, renewal 2",
                            "1: 200: token expired"));
    EXPECT_EQ(timeline(running, {records}, k_submitted + 500s).entries.back().text,
              "ticket expired");
}

TEST(Timeline, OfALongChainIsLimitedToWhatMatters)
{
    constexpr int k_links = 500;
    RunStatus running = status(RunState::running, k_links);
    std::vector<LinkRecords> links;
    for (int i = 0; i < k_links; ++i) {
        const Time begin = k_submitted + i * 1h;
        std::vector<Event> journal = {started(begin, "n0")};
        for (int saved = 1; saved < 20; ++saved) {
            journal.push_back(event(Event::Kind::checkpoint, begin + saved * 2min, "a.pt"));
        }
        if (i + 1 < k_links) {
            journal.push_back(event(Event::Kind::warned, begin + 40min, "20 minutes left"));
            journal.push_back(ended(begin + 50min, Cause::time_limit, true));
        }
        links.push_back(link(i + 1, k_submitted, std::move(journal)));
    }
    const Timeline made = timeline(running, links, k_submitted + k_links * 1h, 2000);
    // 500 parts running and 499 waiting, 499 ends and warnings; three checkpoints are kept.
    EXPECT_EQ(made.entries.size(), 2000U);
    EXPECT_EQ(made.left_out, 500U * 19 + 500 + 3 * 499 - 2000);
    const auto is_checkpoint = [](const TimelineEntry& entry) {
        return entry.kind == EntryKind::checkpoint;
    };
    EXPECT_EQ(std::count_if(made.entries.begin(), made.entries.end(), is_checkpoint), 3);
    EXPECT_TRUE(is_checkpoint(made.entries.back()));
    EXPECT_EQ(made.begin, k_submitted);
    const Timeline short_one = timeline(running, links, k_submitted + k_links * 1h, 10);
    EXPECT_EQ(short_one.entries.size(), 10U);
    EXPECT_EQ(short_one.entries.back().extent, Extent::ongoing);
}

TEST(LinkRecords, AreReadForTheNewestLinks)
{
    fakes::MemoryStore store;
    const RunKey key = status(RunState::running).key;
    for (int i = 1; i <= 3; ++i) {
        ASSERT_TRUE(store.write(layout::journal(key, LinkNumber{i}),
                                to_line(started(k_submitted, "n0")) + "{ torn"));
    }
    ASSERT_TRUE(store.write(layout::job_json(key, LinkNumber{3}),
                            to_json(LinkJob{"centre", JobId{43}, k_submitted, true})));
    ASSERT_TRUE(store.write(idle_finding_json(key, LinkNumber{3}), "no JSON"));
    const auto links = link_records(store, key, LinkNumber{3}, 2);
    ASSERT_EQ(links.size(), 2U);
    EXPECT_EQ(links[0].link, LinkNumber{2});
    EXPECT_FALSE(links[0].job);
    EXPECT_EQ(links[1].job->job, JobId{43});
    EXPECT_EQ(links[1].journal.size(), 1U);
    EXPECT_FALSE(links[1].idle);
}

} // namespace
} // namespace gpuq
