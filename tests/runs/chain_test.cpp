// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/chain.h"

#include "core/exit_status.h"
#include "runs/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Links = std::vector<LinkPast>;
using Decision = Verdict::Decision;

const Time k_start{1'800'000'000s};

/// A run of one day in links of one hour, on one GPU.
Request a_day()
{
    Request request;
    request.walltime = 24h;
    request.gpus.count = 1;
    request.chain.emplace();
    request.chain->link = 1h;
    return request;
}

Request with(const std::function<void(Chain&)>& change)
{
    Request request = a_day();
    change(*request.chain);
    return request;
}

/// Builds a history of links of ten minutes each.
class Past {
public:
    operator const Links&() const { return m_links; } // NOLINT(google-explicit-constructor)

    Past& link(Cause cause, int status = 0, const std::string& host = "node1")
    {
        LinkPast link;
        link.link = LinkNumber{static_cast<int>(m_links.size()) + 1};
        link.started_at = k_start + 10min * static_cast<int>(m_links.size());
        link.ending = Ending{status, cause, "", *link.started_at + 10min};
        link.host = host;
        m_links.push_back(link);
        return *this;
    }
    Past& saved()
    {
        m_links.back().checkpoint = "/ckpt/" + std::to_string(m_links.size());
        return *this;
    }
    Past& notified(seconds before_end = 1min)
    {
        m_links.back().noticed_at = m_links.back().ending->at - before_end;
        return *this;
    }
    Past& for_another_job()
    {
        m_links.back().preempted = true;
        return *this;
    }
    Past& saved_on_notice(seconds before_end = 1min)
    {
        notified(before_end).saved();
        m_links.back().saved_after_notice = true;
        return *this;
    }
    Past& resumed()
    {
        m_links.back().resumed = true;
        return *this;
    }
    Past& times(int count)
    {
        const LinkPast last = m_links.back();
        for (int i = 1; i < count; ++i) {
            link(last.ending->cause, last.ending->status, last.host);
            m_links.back().checkpoint = last.checkpoint;
        }
        return *this;
    }
    Time now() const { return m_links.empty() ? k_start : m_links.back().ending->at; }

private:
    Links m_links;
};

Verdict judged(const Request& request, const Past& past)
{
    return decide_next(request, past, past.now());
}

struct Rule {
    const char* name;
    std::function<Past()> past;
    Decision decision;
    Restart restart = Restart::first;
    std::optional<Cause> cause; ///< of a run that is over
    const char* why = "";       ///< substring of the reason
    bool from_scratch = false;
};

class Judge : public ::testing::TestWithParam<Rule> {};

TEST_P(Judge, FollowsTheRule)
{
    const Request request =
        with([](Chain& chain) { chain.from_scratch = GetParam().from_scratch; });
    const Verdict verdict = judged(request, GetParam().past());
    ASSERT_EQ(verdict.decision, GetParam().decision) << verdict.why;
    EXPECT_THAT(verdict.why, HasSubstr(GetParam().why));
    if (verdict.decision == Decision::next_link) {
        EXPECT_EQ(word(verdict.restart), word(GetParam().restart));
        EXPECT_FALSE(verdict.ending);
    }
    ASSERT_EQ(verdict.ending.has_value(), GetParam().cause.has_value());
    if (verdict.ending) {
        EXPECT_EQ(word(verdict.ending->cause), word(*GetParam().cause));
        EXPECT_FALSE(verdict.ending->continues);
    }
}

const Rule k_rules[] = {
    {"TheFirstLinkStarts", [] { return Past(); }, Decision::next_link, Restart::first},

    // The program's exit status.
    {"FinishedIsOver", [] { return Past().link(Cause::finished, 0).saved(); }, Decision::over,
     Restart::first, Cause::finished},
    {"DoNotContinueIsOver", [] { return Past().link(Cause::finished, 93).saved(); }, Decision::over,
     Restart::first, Cause::finished},
    {"DoNotContinueIsOverAlsoWhenTold",
     [] { return Past().link(Cause::finished, 93).saved_on_notice(); }, Decision::over,
     Restart::first, Cause::finished},
    {"ContinueMeGoesOn", [] { return Past().link(Cause::finished, 85).saved(); },
     Decision::next_link, Restart::timeout},
    {"ContinueMeWithoutACheckpointIsOver", [] { return Past().link(Cause::finished, 85); },
     Decision::over, Restart::first, Cause::time_limit, "it may not start over"},
    {"LeftAsToldGoesOnWhateverItsStatus",
     [] { return Past().link(Cause::finished, 7).saved_on_notice(); }, Decision::next_link,
     Restart::timeout},
    {"LeftAsToldByASignalGoesOn",
     [] { return Past().link(Cause::crashed, 128 + 10).saved_on_notice(); }, Decision::next_link,
     Restart::timeout},
    {"FinishedAfterItHadSavedAsToldGoesOn",
     [] { return Past().link(Cause::finished, 0).saved_on_notice(); }, Decision::next_link,
     Restart::timeout},
    {"ToldButFinishedWithoutSavingIsOver",
     [] { return Past().link(Cause::finished, 0).notified(); }, Decision::over, Restart::first,
     Cause::finished},

    // Limit and preemption.
    {"TimeLimitGoesOn", [] { return Past().link(Cause::time_limit, 124).saved(); },
     Decision::next_link, Restart::timeout},
    {"TimeLimitWithoutAnyCheckpointIsOver", [] { return Past().link(Cause::time_limit, 124); },
     Decision::over, Restart::first, Cause::time_limit, "--restart-from-scratch"},
    {"TimeLimitWithAnEarlierCheckpointGoesOn",
     [] { return Past().link(Cause::time_limit).saved().link(Cause::time_limit); },
     Decision::next_link, Restart::timeout},
    {"FromScratchGoesOnWithoutACheckpoint",
     [] { return Past().link(Cause::time_limit).times(2); },
     Decision::next_link,
     Restart::timeout,
     {},
     "",
     true},
    {"FromScratchIsOverAfterThreeInVain", [] { return Past().link(Cause::time_limit).times(3); },
     Decision::over, Restart::first, Cause::time_limit, "3 links without a new checkpoint", true},
    {"ThreeLimitsInVainAreOver",
     [] { return Past().link(Cause::time_limit).saved().link(Cause::time_limit).times(3); },
     Decision::over, Restart::first, Cause::time_limit, "3 links without a new checkpoint"},
    {"ACheckpointInBetweenForgivesTheLinksInVain",
     [] {
         return Past()
             .link(Cause::time_limit)
             .saved()
             .link(Cause::time_limit)
             .times(2)
             .link(Cause::time_limit)
             .saved()
             .link(Cause::time_limit)
             .times(2);
     },
     Decision::next_link, Restart::timeout},
    {"LimitsAndCrashesInVainCountTogether",
     [] {
         return Past()
             .link(Cause::time_limit)
             .saved()
             .link(Cause::time_limit)
             .link(Cause::crashed, 139)
             .link(Cause::time_limit);
     },
     Decision::over, Restart::first, Cause::time_limit, "3 links without a new checkpoint"},
    {"PreemptionGoesOn", [] { return Past().link(Cause::preempted, 119); }, Decision::next_link,
     Restart::preempt},
    {"LeavingInTheTimeOfGraceIsPreemption",
     [] { return Past().link(Cause::finished, 85).saved_on_notice().for_another_job(); },
     Decision::next_link, Restart::preempt},
    {"SoIsDyingInIt",
     [] { return Past().link(Cause::crashed, 143).saved().notified().for_another_job(); },
     Decision::next_link, Restart::preempt},
    {"ButWhoHasFinishedInItHas",
     [] { return Past().link(Cause::finished, 0).notified().for_another_job(); }, Decision::over,
     Restart::first, Cause::finished},
    {"PreemptionHasNoCount", [] { return Past().link(Cause::preempted, 119).times(20); },
     Decision::next_link, Restart::preempt},

    // Nodes.
    {"ANodeFailureGoesOn",
     [] { return Past().link(Cause::node_failed, 119); },
     Decision::next_link,
     Restart::node,
     {},
     "its node node1 failed"},
    {"LostGoesOn", [] { return Past().link(Cause::lost, 119); }, Decision::next_link,
     Restart::node},
    {"FourNodesGoOn", [] { return Past().link(Cause::node_failed, 119).times(4); },
     Decision::next_link, Restart::node},
    {"FiveNodesAreOver", [] { return Past().link(Cause::node_failed, 119).times(5); },
     Decision::over, Restart::first, Cause::node_failed, "5 nodes in a row"},
    {"ACheckpointInBetweenForgivesTheNodes",
     [] {
         return Past()
             .link(Cause::node_failed)
             .times(4)
             .link(Cause::lost)
             .saved()
             .link(Cause::lost);
     },
     Decision::next_link, Restart::node},

    // Crashes.
    {"ACrashBeforeTheFirstCheckpointIsOver", [] { return Past().link(Cause::crashed, 139); },
     Decision::over, Restart::first, Cause::crashed},
    {"AnErrorBeforeTheFirstCheckpointIsOver", [] { return Past().link(Cause::finished, 1); },
     Decision::over, Restart::first, Cause::finished, "", true},
    {"ACrashAfterACheckpointGoesOn",
     [] { return Past().link(Cause::crashed, 139).saved(); },
     Decision::next_link,
     Restart::crash,
     {},
     "status 139"},
    {"MemoryIsACrash", [] { return Past().link(Cause::memory, 137).saved(); }, Decision::next_link,
     Restart::crash},
    {"GpuMemoryIsACrash", [] { return Past().link(Cause::gpu_memory, 1).saved(); },
     Decision::next_link, Restart::crash},
    {"ThreeCrashesGoOn", [] { return Past().link(Cause::crashed, 139).saved().times(3); },
     Decision::next_link, Restart::crash},
    {"TheFourthCrashIsOver", [] { return Past().link(Cause::crashed, 139).saved().times(4); },
     Decision::over, Restart::first, Cause::crashed, "it has failed 4 times"},
    {"ThreeCrashesInVainAreOver",
     [] { return Past().link(Cause::time_limit).saved().link(Cause::crashed, 139).times(3); },
     Decision::over, Restart::first, Cause::crashed, "3 links without a new checkpoint"},

    // Users.
    {"StoppedIsOver", [] { return Past().link(Cause::stopped, 123).saved_on_notice(); },
     Decision::over, Restart::first, Cause::stopped},
    {"CancelledIsOver", [] { return Past().link(Cause::cancelled, 123).saved_on_notice(); },
     Decision::over, Restart::first, Cause::cancelled},
    {"NotStartableIsOver", [] { return Past().link(Cause::not_started, 127).saved(); },
     Decision::over, Restart::first, Cause::not_started},
    {"LostInputIsOver", [] { return Past().link(Cause::input_lost, 119).saved(); }, Decision::over,
     Restart::first, Cause::input_lost},

    // Resumed by the user.
    {"ResumingForgivesTheLinksInVain",
     [] {
         return Past()
             .link(Cause::time_limit)
             .saved()
             .link(Cause::time_limit)
             .times(3)
             .link(Cause::time_limit)
             .resumed();
     },
     Decision::next_link, Restart::timeout},
    {"ResumingForgivesTheCrashes",
     [] {
         return Past()
             .link(Cause::crashed, 1)
             .saved()
             .times(4)
             .link(Cause::crashed, 1)
             .saved()
             .resumed();
     },
     Decision::next_link, Restart::crash},
    {"ResumingForgivesTheNodes",
     [] { return Past().link(Cause::lost).times(5).link(Cause::lost).resumed(); },
     Decision::next_link, Restart::node},
    {"ResumedAndInVainAgainIsOver",
     [] {
         return Past()
             .link(Cause::time_limit)
             .saved()
             .link(Cause::time_limit)
             .times(3)
             .link(Cause::time_limit)
             .resumed()
             .link(Cause::time_limit)
             .times(2);
     },
     Decision::over, Restart::first, Cause::time_limit, "3 links without a new checkpoint"},
};

INSTANTIATE_TEST_SUITE_P(Rules, Judge, ::testing::ValuesIn(k_rules),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(JudgeChain, WaitsWhileNobodyKnowsHowTheNewestLinkEnded)
{
    Links links = Past().link(Cause::time_limit).saved().link(Cause::time_limit);
    links.back().ending.reset();
    const Verdict verdict = decide_next(a_day(), links, k_start + 1h);
    EXPECT_EQ(verdict.decision, Decision::wait);
    EXPECT_EQ(verdict.why, "how link 2 ended is not yet known");
    EXPECT_FALSE(verdict.ending);
}

TEST(JudgeChain, EndsARunThatIsNoChainWithItsLink)
{
    Request plain = a_day();
    plain.chain.reset();
    const Verdict verdict = judged(plain, Past().link(Cause::node_failed, 119).saved());
    EXPECT_EQ(verdict.decision, Decision::over);
    EXPECT_EQ(verdict.ending->cause, Cause::node_failed);
}

TEST(JudgeChain, PausesLongerAfterEachCrash)
{
    Past past;
    std::vector<seconds> pauses;
    for (int i = 0; i < 3; ++i) {
        past.link(Cause::crashed, 1).saved();
        pauses.push_back(judged(a_day(), past).pause);
    }
    EXPECT_THAT(pauses, ElementsAre(0s, 60s, 300s));
}

TEST(JudgeChain, AvoidsEveryNodeThatHasFailed)
{
    const Past past = Past()
                          .link(Cause::node_failed, 119, "node1")
                          .saved()
                          .link(Cause::time_limit, 124, "node2")
                          .saved()
                          .link(Cause::node_failed, 119, "node3")
                          .saved()
                          .link(Cause::node_failed, 119, "node1");
    EXPECT_THAT(judged(a_day(), past).exclude, ElementsAre("node1", "node3"));
    EXPECT_THAT(judged(a_day(), Past().link(Cause::time_limit).saved()).exclude, IsEmpty());
}

TEST(JudgeChain, ForgivesTheNodesWhenAPersonLetsItGoOn)
{
    const Past past = Past()
                          .link(Cause::node_failed, 119, "node1")
                          .link(Cause::node_failed, 119, "node2")
                          .resumed();
    EXPECT_THAT(failed_nodes(past), ElementsAre("node2"));
}

TEST(JudgeChain, KeepsTheWordsOfTheEndBesidesItsOwn)
{
    Links links = Past().link(Cause::time_limit).saved().link(Cause::crashed, 1).times(3);
    links.back().ending->detail = "by signal 11";
    EXPECT_EQ(decide_next(a_day(), links, k_start + 1h).ending->detail,
              "by signal 11; 3 links without a new checkpoint");
}

// Budgets.

struct Budget {
    const char* name;
    std::function<void(Request&)> limit;
    const char* why;
};

class UsedUp : public ::testing::TestWithParam<Budget> {};

TEST_P(UsedUp, EndsTheRunThatWouldGoOn)
{
    const Past past = Past().link(Cause::time_limit).saved().times(3); // 30 minutes
    Request request = a_day();
    EXPECT_EQ(judged(request, past).decision, Decision::next_link);
    GetParam().limit(request);
    const Verdict verdict = judged(request, past);
    ASSERT_EQ(verdict.decision, Decision::over);
    EXPECT_EQ(verdict.ending->status, static_cast<int>(ExitStatus::time_limit));
    EXPECT_EQ(verdict.ending->cause, Cause::time_limit);
    EXPECT_EQ(verdict.ending->detail, GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    Budgets, UsedUp,
    ::testing::Values(Budget{"Time", [](Request& run) { run.walltime = 30min; },
                             "its time of 30 min is used up"},
                      Budget{"Links", [](Request& run) { run.chain->max_links = 3; },
                             "its 3 links are used up (--max-links)"},
                      Budget{"GpuTime", [](Request& run) { run.chain->gpu_time = 30min; },
                             "its GPU-hours are used up (--gpu-hours)"},
                      Budget{"GpuTimeOfAllGpus",
                             [](Request& run) {
                                 run.gpus.count = 2;
                                 run.nodes = 2;
                                 run.chain->gpu_time = 2h;
                             },
                             "its GPU-hours are used up (--gpu-hours)"},
                      Budget{"Date", [](Request& run) { run.chain->until = k_start + 30min; },
                             "its end date is reached (--until)"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(JudgeChain, LeavesARunThatIsOverAnywayItsOwnEnd)
{
    Request request = a_day();
    request.walltime = 10min;
    EXPECT_EQ(judged(request, Past().link(Cause::finished, 0)).ending->cause, Cause::finished);
    EXPECT_EQ(judged(request, Past().link(Cause::stopped, 123)).ending->cause, Cause::stopped);
}

TEST(NextLength, IsALinkOrWhatIsLeft)
{
    const Past past = Past().link(Cause::time_limit).saved(); // 10 minutes
    Request request = a_day();
    EXPECT_EQ(next_length(request, {}, k_start), 1h);
    EXPECT_EQ(next_length(request, past, past.now()), 1h);
    request.walltime = 35min;
    EXPECT_EQ(next_length(request, past, past.now()), 25min);
    EXPECT_EQ(next_length(request, past, past.now() + 10h), 25min) << "waiting is not running";
    request.walltime = 5min;
    EXPECT_EQ(next_length(request, past, past.now()), 0s);
}

TEST(NextLength, TheFirstLinkMayHaveItsOwn)
{
    const Past past = Past().link(Cause::time_limit).saved();
    const Request request = with([](Chain& chain) { chain.first = 20min; });
    EXPECT_EQ(next_length(request, {}, k_start), 20min);
    EXPECT_EQ(next_length(request, past, past.now()), 1h);
    EXPECT_EQ(length_of(*request.chain, LinkNumber{1}), 20min);
    EXPECT_EQ(length_of(*request.chain, LinkNumber{2}), 1h);
    EXPECT_EQ(expected_links(request, {}, k_start), std::nullopt) << "until it is done";
}

TEST(NextLength, EndsAtTheDate)
{
    const Past past = Past().link(Cause::time_limit).saved();
    const Request request = with([](Chain& chain) { chain.until = k_start + 40min; });
    EXPECT_EQ(next_length(request, {}, k_start), 40min);
    EXPECT_EQ(next_length(request, past, past.now() + 10min), 20min);
    EXPECT_EQ(next_length(request, past, past.now() + 2h), 0s);
}

TEST(NextLength, EndsWithTheGpuTime)
{
    const Past past = Past().link(Cause::time_limit).saved();
    Request request = with([](Chain& chain) { chain.gpu_time = 2h; });
    request.gpus.count = 4; // half an hour on all of them
    EXPECT_EQ(next_length(request, {}, k_start), 30min);
    EXPECT_EQ(next_length(request, past, past.now()), 20min);
    request.gpus.count = 0;
    EXPECT_EQ(next_length(request, past, past.now()), 1h);
}

TEST(TimeUsed, CountsALinkThatRunsUpToNow)
{
    Links links = Past().link(Cause::time_limit).link(Cause::time_limit);
    EXPECT_EQ(time_used(links, k_start + 5h), 20min);
    links.back().ending.reset();
    EXPECT_EQ(time_used(links, k_start + 25min), 25min);
    links.back().started_at.reset(); // its supervisor has written nothing
    EXPECT_EQ(time_used(links, k_start + 25min), 10min);
}

TEST(ExpectedLinks, CountsTheLinksThatTheTimeTakes)
{
    Request request = a_day();
    EXPECT_EQ(expected_links(request, {}, k_start), 24);
    request.walltime = 90min;
    EXPECT_EQ(expected_links(request, {}, k_start), 2);
    request.chain->max_links = 1;
    EXPECT_EQ(expected_links(request, {}, k_start), 1);
    request.chain.reset();
    EXPECT_EQ(expected_links(request, {}, k_start), 1);
}

TEST(ExpectedLinks, LearnsFromLinksThatWereShorter)
{
    Request request = a_day();
    request.walltime = 2h;
    const Past past = Past().link(Cause::preempted).times(3); // half an hour in total
    EXPECT_EQ(expected_links(request, past, past.now()), 3 + 2);
    Links links = past;
    links.back().ending.reset(); // the third link has been running for ten minutes
    EXPECT_EQ(expected_links(request, links, past.now()), 3 + 1);
    request.chain->max_links = 2;
    EXPECT_EQ(expected_links(request, links, past.now()), 3) << "never fewer than there are";
}

TEST(NoticeLead, IsATwentiethAtFirst)
{
    EXPECT_EQ(notice_lead(1h, {}), 3min);
    EXPECT_EQ(notice_lead(48h, {}), 5min);
    EXPECT_EQ(notice_lead(1min, {}), 10s);
    EXPECT_EQ(notice_lead(12s, {}), 6s) << "never more than half of the link";
    EXPECT_EQ(notice_lead(1h, Past().link(Cause::node_failed)), 3min) << "nobody was told";
}

TEST(NoticeLead, FollowsWhatSavingTook)
{
    EXPECT_EQ(notice_lead(1h, Past().link(Cause::time_limit).saved_on_notice(20s)), 26s);
    EXPECT_EQ(notice_lead(1h, Past()
                                  .link(Cause::time_limit)
                                  .saved_on_notice(20s)
                                  .link(Cause::time_limit)
                                  .saved_on_notice(10s)),
              26s)
        << "the longest";
    EXPECT_EQ(notice_lead(30s, Past().link(Cause::time_limit).saved_on_notice(20s)), 15s);
}

TEST(NoticeLead, GrowsAfterALinkThatDidNotSaveInTime)
{
    EXPECT_EQ(notice_lead(1h, Past().link(Cause::time_limit).notified(20s)), 34s);
    EXPECT_EQ(notice_lead(1h, Past()
                                  .link(Cause::time_limit)
                                  .notified(20s)
                                  .link(Cause::time_limit)
                                  .saved_on_notice(28s)),
              34s)
        << "and shrinks again";
}

// Journals of links.

TEST(LinkPastOf, IsBlankWithoutAJournal)
{
    LinkPast blank;
    blank.link = LinkNumber{3};
    EXPECT_EQ(link_past(LinkNumber{3}, {}), blank);
}

TEST(LinkPastOf, TellsWhatTheJournalTells)
{
    std::vector<Event> journal{event(Event::Kind::supervisor_started, k_start),
                               event(Event::Kind::checkpoint, k_start + 5min),
                               event(Event::Kind::noticed, k_start + 9min),
                               event(Event::Kind::ended, k_start + 10min)};
    journal[0].host = "node7";
    journal[1].detail = "/ckpt/5";
    journal[3].status = 0;
    journal[3].cause = Cause::finished;
    journal[3].continues = true;
    LinkPast past;
    past.link = LinkNumber{2};
    past.started_at = k_start;
    past.host = "node7";
    past.checkpoint = "/ckpt/5";
    past.noticed_at = k_start + 9min;
    past.ending = Ending{0, Cause::finished, "", k_start + 10min, true};
    EXPECT_EQ(link_past(LinkNumber{2}, journal), past);

    Event late = event(Event::Kind::checkpoint, k_start + 9min + 30s);
    late.detail = "/ckpt/9";
    journal.insert(journal.end() - 1, late);
    past.checkpoint = "/ckpt/9";
    past.saved_after_notice = true;
    EXPECT_EQ(link_past(LinkNumber{2}, journal), past);

    journal[2].detail = "preempted";
    past.preempted = true;
    EXPECT_EQ(link_past(LinkNumber{2}, journal), past);
}

TEST(EndOfLink, IsATimeThatAClockCanHave)
{
    Event changed = event(Event::Kind::limit_changed, k_start);
    EXPECT_EQ(end_of_link(changed), std::nullopt);
    changed.to = 1'800'003'600;
    EXPECT_EQ(end_of_link(changed), k_start + 1h);
    changed.to = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(end_of_link(changed), std::nullopt);
}

TEST(LinkPastOf, IsToldByTheNextLinkHowItEndedWhenItCouldNot)
{
    std::vector<Event> next{event(Event::Kind::supervisor_started, k_start)};
    EXPECT_FALSE(ending_before(next));
    next.push_back(event(Event::Kind::resumed, k_start + 1s));
    EXPECT_FALSE(ending_before(next)) << "the link before had said it itself";
    next.back().cause = Cause::node_failed;
    next.back().status = 119;
    EXPECT_EQ(ending_before(next), (Ending{119, Cause::node_failed, "as recorded by the next link",
                                           k_start + 1s, true}));
}

TEST(RestartWords, AreThoseOfTheManual)
{
    EXPECT_EQ(word(Restart::first), "first");
    EXPECT_EQ(word(Restart::node), "node");
    EXPECT_EQ(word(last_of(Restart())), "user");
}

} // namespace
} // namespace gpuq
