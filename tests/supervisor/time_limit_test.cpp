// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/time_limit.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

const Time k_job_start{1'000'000s};
const TimeLimit::Steady k_steady{1h};

TimeLimit an_hour(std::optional<Time> link_end = std::nullopt)
{
    return {Deadline(k_job_start, 60min, link_end), link_end, 60min, k_steady + 10s};
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
