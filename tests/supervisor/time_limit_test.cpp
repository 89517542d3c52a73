// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/time_limit.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

const Time k_job_start{1'000'000s};
const TimeLimit::Steady k_steady{1h};

TimeLimit an_hour(std::optional<Time> link_end = std::nullopt,
                  std::optional<Time> job_end = std::nullopt)
{
    const auto link =
        link_end ? std::optional(TimeLimit::LinkEnd{*link_end, job_end}) : std::nullopt;
    return {Deadline(k_job_start, 60min, link_end), link, 60min, k_steady + 10s};
}

/// The end of the link after Slurm has answered with these ends of its job.
Time end_after(TimeLimit limit, std::initializer_list<std::chrono::minutes> job_ends)
{
    for (const auto end : job_ends) {
        JobNews news;
        news.ends_at = k_job_start + end;
        limit.take_end(news);
    }
    return limit.at();
}

TEST(TimeLimit, FollowsSlurmsAnswer)
{
    TimeLimit limit = an_hour();
    EXPECT_EQ(limit.at(), k_job_start + 60min);
    EXPECT_EQ(limit.reached().detail, "");
    JobNews news;
    news.ends_at = k_job_start + 30min;
    news.walltime = 30min;
    limit.take_walltime(news);
    limit.take_end(news);
    EXPECT_EQ(limit.at(), k_job_start + 30min);
    EXPECT_EQ(limit.reached().detail, "30 min");
    EXPECT_FALSE(limit.is_reached(k_job_start + 29min));
    EXPECT_TRUE(limit.is_reached(k_job_start + 29min + 55s));
    limit.take_walltime({});
    limit.take_end({}); // unknown: as before
    EXPECT_EQ(limit.at(), k_job_start + 30min);
    EXPECT_EQ(limit.reached().detail, "30 min");
}

TEST(TimeLimit, OfALinkThatIsShorterThanItsJobIsItsOwnEnd)
{
    TimeLimit limit = an_hour(k_job_start + 20min);
    JobNews news;
    news.ends_at = k_job_start + 50min;
    limit.take_end(news);
    EXPECT_EQ(limit.at(), k_job_start + 20min);
    news.ends_at = k_job_start + 10min;
    limit.take_end(news);
    EXPECT_EQ(limit.at(), k_job_start + 10min);
}

TEST(TimeLimit, MoreTimeForTheJobIsAsMuchForItsLink)
{
    const TimeLimit limit = an_hour(k_job_start + 20min, k_job_start + 50min);
    EXPECT_EQ(end_after(limit, {110min}), k_job_start + 80min);
    EXPECT_EQ(end_after(limit, {110min, 110min}), k_job_start + 80min) << "once";
    EXPECT_EQ(end_after(limit, {10min}), k_job_start + 10min);
    EXPECT_EQ(end_after(limit, {10min, 50min}), k_job_start + 20min) << "as at the start";
    EXPECT_EQ(end_after(limit, {110min, 60min, 111min}), k_job_start + 81min);
    EXPECT_EQ(end_after(an_hour(k_job_start + 20min), {50min, 60min}), k_job_start + 30min)
        << "the first answer is the limit at the start";
    TimeLimit raised = an_hour(k_job_start + 20min);
    raised.set_raised(10min);
    EXPECT_EQ(end_after(raised, {60min}), k_job_start + 30min) << "unless it was raised before";
}

TEST(TimeLimit, AnExtensionIsReadWithCare)
{
    EXPECT_EQ(extension_in("120 60\n"), 60min);
    for (const char* const text : {"", "120", "120 x", "120 -5", "1 99999999999999999999"}) {
        EXPECT_EQ(extension_in(text), 0min) << text;
    }
}

TEST(TimeLimit, IsQueriedAtOnceIfItIsOutdated)
{
    TimeLimit limit = an_hour();
    limit.set_raised(10min);
    EXPECT_EQ(limit.next_query(), TimeLimit::Steady::min());
    JobNews news;
    news.may_get_grace = false;
    limit.take_preemption(news); // the answer to an earlier query
    EXPECT_TRUE(limit.query_is_due(k_steady, 60s));
    EXPECT_FALSE(limit.query_is_due(k_steady, 60s));
    EXPECT_EQ(limit.next_query(), TimeLimit::Steady::max());
}

TEST(TimeLimit, IsQueriedOnceOrPeriodically)
{
    TimeLimit once = an_hour();
    EXPECT_FALSE(once.query_is_due(k_steady + 9s, {}));
    EXPECT_TRUE(once.query_is_due(k_steady + 10s, {}));
    EXPECT_FALSE(once.query_is_due(k_steady + 1h, {}));

    TimeLimit again = an_hour();
    EXPECT_TRUE(again.query_is_due(k_steady + 10s, 60s));
    EXPECT_EQ(again.next_query(), k_steady + 70s);
    JobNews news;
    again.take_preemption(news);
    EXPECT_FALSE(again.knows_preemption());
    news.may_get_grace = true;
    again.take_preemption(news);
    EXPECT_EQ(again.next_query(), k_steady + 70s);
    news.may_get_grace = false;
    again.take_preemption(news);
    EXPECT_TRUE(again.knows_preemption());
    EXPECT_EQ(again.next_query(), TimeLimit::Steady::max());
}

TEST(TimeLimit, IsQueriedBeforeEachWarning)
{
    TimeLimit limit = an_hour();
    EXPECT_EQ(limit.next_warning(), k_job_start + 45min);
    EXPECT_TRUE(limit.needs_query_to_warn());
    EXPECT_FALSE(limit.needs_query_to_warn());
    EXPECT_EQ(limit.warning(k_job_start + 45min), "15 minutes left");
    EXPECT_TRUE(limit.needs_query_to_warn());
}

} // namespace
} // namespace gpuq::supervisor
