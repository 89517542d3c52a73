// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/holdings.h"

#include "fakes/now.h"
#include "runs/insight/overview_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t k_first = 1000, k_second = 1001, k_third = 4'294'967'294;
Inventory inventory(int in_use)
{
    Inventory made;
    Partition queue;
    queue.name = "short";
    made.partitions = {queue};
    for (const char* name : {"n0", "n1"}) {
        Node node;
        node.name = name;
        node.gpus = {{"k80", 4, in_use}};
        node.partitions = {"short"};
        node.cpus = 16;
        made.nodes.push_back(node);
    }
    return made;
}

Job running(std::uint32_t id, std::uint32_t uid, const char* node, int gpus,
            std::optional<Time> end)
{
    Job job;
    job.id = JobId{id};
    job.uid = uid;
    job.state = JobState::running;
    job.started_at = k_now - 1h;
    job.ends_at = end;
    job.held.whole = {{node, "k80", gpus}};
    return job;
}

Overview overview(std::vector<Job> jobs, int in_use = 4)
{
    return make_overview("centre", inventory(in_use), {std::move(jobs)}, k_first, k_now);
}

std::vector<std::uint32_t> jobs_in(const std::vector<Holding>& holdings)
{
    std::vector<std::uint32_t> jobs;
    for (const Holding& holding : holdings) {
        jobs.push_back(holding.job.value);
    }
    return jobs;
}

TEST(Holdings, AreThoseOfAllUsersByNodeAndJob)
{
    Job wide = running(3, k_second, "n1", 2, {});
    wide.held.whole.push_back({"n0", "k80", 1});
    wide.called = "20_3";
    Job waits = running(4, k_second, "n0", 1, {});
    waits.state = JobState::pending;
    const Overview made = overview({wide, running(2, k_first, "n1", 1, k_now + 1h + 300ms), waits});
    EXPECT_EQ(made.holdings, (std::vector<Holding>{
                                 {"n0", "k80", 1, JobId{3}, "20_3", k_second, k_now - 1h, {}},
                                 {"n1", "k80", 1, JobId{2}, "", k_first, k_now - 1h, k_now + 1h},
                                 {"n1", "k80", 2, JobId{3}, "20_3", k_second, k_now - 1h, {}},
                             }));
}

TEST(Holdings, OfOnesOwnJobsAreReplacedByEachAnswer)
{
    Overview known =
        overview({running(1, k_first, "n0", 2, {}), running(2, k_second, "n0", 1, {})});
    replace_own_holdings(known, {running(7, k_first, "n1", 1, {})});
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{2, 7}));
    known.jobs = {OwnJob{running(7, k_first, "n1", 1, {})}};
    replace_own_holdings(known, {});
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{2}));
}

TEST(Holdings, OfOthersGoWhenTheirTimeLimitIsLongPast)
{
    Overview known =
        overview({running(1, k_second, "n0", 1, k_now), running(2, k_second, "n0", 1, {}),
                  running(3, k_first, "n0", 1, k_now)});
    drop_ended_holdings(known, k_now + 1min);
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{1, 2, 3}));
    drop_ended_holdings(known, k_now + 3min);
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{2, 3}));
}

TEST(Holdings, OfOthersGoWhenFewerGpusAreInUse)
{
    Overview known = overview(
        {running(1, k_second, "n0", 1, {}), running(2, k_second, "n0", 1, k_now + 2h),
         running(3, k_second, "n0", 1, k_now + 1h), running(4, k_first, "n0", 1, k_now + 10min)});
    known.pools[0].nodes[0].in_use = 3;
    drop_ended_holdings(known, k_now);
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{1, 2, 4}));
    known.pools[0].nodes[0].in_use = std::nullopt;
    drop_ended_holdings(known, k_now);
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{1, 2, 4}));
    known.pools[0].nodes[0].in_use = 1;
    drop_ended_holdings(known, k_now);
    EXPECT_EQ(jobs_in(known.holdings), (std::vector<std::uint32_t>{4}));
}

TEST(OverviewRecord, ReadsBackNodesAndHoldings)
{
    Job array = running(0x80000001, k_third, "n0", 1, {});
    array.called = "20_3";
    Overview made = overview({array, running(2, k_first, "n1", 3, k_now + 1h)});
    made.pools[0].nodes[0].up = false;
    made.pools[0].nodes[1].in_use = std::nullopt;
    made.pools[0].nodes[1].reserved = true;
    const auto read = overview_from_json(to_json(made));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->pools, made.pools);
    EXPECT_EQ(read->holdings, made.holdings);
    EXPECT_EQ(read->uid, k_first);
    EXPECT_EQ(overview_from_json(to_json(Overview{}))->uid, std::nullopt);
}

TEST(OverviewRecord, OfTenThousandJobsIsSmall)
{
    std::vector<Job> jobs;
    for (std::uint32_t i = 0; i < 10'000; ++i) {
        const std::string node = fmt::format("gpu{:04}", i * 7919 % 1250);
        jobs.push_back(running(48'000'000 + i * 3, k_first + i * 31 % 400, node.c_str(), 1,
                               k_now + std::chrono::seconds(i * 7907 % 86'400)));
        jobs.back().started_at = k_now - std::chrono::seconds(i * 6421 % 86'400);
    }
    const std::string text = to_json(overview(jobs));
    EXPECT_LT(text.size(), 500'000U + overview(jobs).jobs.size() * 600U);
    EXPECT_EQ(overview_from_json(text)->holdings, overview(jobs).holdings);
}

TEST(OverviewRecord, WithInvalidHoldingsIsNone)
{
    const std::string text = to_json(overview({running(2, k_first, "n1", 3, k_now + 1h)}));
    const std::string rows = "\"rows\":\"";
    const std::size_t begin = text.find(rows);
    ASSERT_NE(begin, std::string::npos);
    for (const char* bad :
         {"x ", "9 ", "-1 ", "1 1 1", "99999999999999999999 ", "4000000000000000 ",
          "9 0 0 1 1 1 1 1 ", "-1 0 0 1 1 1 1 1 ", "0 0 0 1 1 1 1 1 0 0 "}) {
        std::string changed = text;
        const std::size_t first = begin + rows.size();
        changed.replace(first, text.find('"', first) - first, bad);
        EXPECT_FALSE(overview_from_json(changed)) << bad;
    }
}

} // namespace
} // namespace gpuq
