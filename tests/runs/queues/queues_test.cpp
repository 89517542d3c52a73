// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/queues.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "ports/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

TEST(QueueOf, IsThePolicysQueueOfAnInnerPartition)
{
    EXPECT_EQ(queue_of("calibration,long", "long"), "long");
    EXPECT_EQ(queue_of("calibration,long", "calibration-visu-more"), "calibration");
    EXPECT_EQ(queue_of("long,long-visu", "long-visu-more"), "long-visu");
    EXPECT_EQ(queue_of("calibration,long", "calibrations"), "");
    EXPECT_EQ(queue_of("calibration", ""), "");
}

struct Site {
    Site()
    {
        Partition calibration;
        calibration.name = "calibration";
        calibration.max_time = 120min;
        calibration.is_default = true;
        calibration.ruled = true;
        calibration.nodes = "n[0-1]";
        calibration.most_nodes = 2;
        calibration.has_gpus = true;
        calibration.least_nodes = 2;
        calibration.restricted = true;
        calibration.accounts = {"lab_a"};
        calibration.denied_accounts = {"lab_b"};
        cluster.queues = {calibration};
    }

    Queues asked_and_kept()
    {
        auto queues = find_queues(store, cluster, clock);
        EXPECT_TRUE(queues);
        keep_queues(store, cluster.cluster_name, *queues, clock.now());
        return *queues;
    }
    long questions() const
    {
        return std::count(cluster.requests.begin(), cluster.requests.end(), "partitions");
    }

    fakes::MemoryStore store;
    fakes::FakeCluster cluster;
    fakes::FakeClock clock;
};

TEST(Queues, AreAskedForOnceInAMinute)
{
    Site site;
    EXPECT_FALSE(site.asked_and_kept().from_disk);
    site.clock.advance(59s);
    const Queues again = site.asked_and_kept();
    EXPECT_TRUE(again.from_disk);
    ASSERT_EQ(again.partitions.size(), 1u);
    EXPECT_EQ(again.partitions[0].name, "calibration");
    EXPECT_EQ(again.partitions[0].max_time, 120min);
    EXPECT_EQ(again.partitions[0].default_time, std::nullopt);
    EXPECT_TRUE(again.partitions[0].is_default && again.partitions[0].up);
    EXPECT_TRUE(again.partitions[0].ruled);
    EXPECT_EQ(again.partitions[0].nodes, "n[0-1]");
    EXPECT_EQ(again.partitions[0].most_nodes, 2);
    EXPECT_EQ(again.partitions[0].has_gpus, true);
    EXPECT_EQ(again.partitions[0].least_nodes, 2);
    EXPECT_TRUE(again.partitions[0].restricted);
    EXPECT_THAT(again.partitions[0].accounts, testing::ElementsAre("lab_a"));
    EXPECT_THAT(again.partitions[0].denied_accounts, testing::ElementsAre("lab_b"));
    EXPECT_EQ(site.questions(), 1);
}

TEST(Queues, AreAskedForAgainLater)
{
    Site site;
    site.asked_and_kept();
    site.clock.advance(61s);
    EXPECT_FALSE(site.asked_and_kept().from_disk);
    EXPECT_EQ(site.questions(), 2);
}

TEST(Queues, OfAnotherClusterAreNotMeant)
{
    Site site;
    site.asked_and_kept();
    site.cluster.cluster_name = "other";
    EXPECT_FALSE(find_queues(site.store, site.cluster, site.clock)->from_disk);
}

TEST(Queues, AreAskedForWhenTheKeptAnswerIsDamagedOrFromTheFuture)
{
    Site site;
    site.asked_and_kept();
    site.clock.jump(-10s);
    EXPECT_FALSE(find_queues(site.store, site.cluster, site.clock)->from_disk);
    for (const char* text : {"", "{", "[]", "{\"v\":1}", "{\"v\":1,\"at\":\"x\",\"queues\":[]}"}) {
        site.store.files[layout::queues("lab")] = text;
        EXPECT_FALSE(find_queues(site.store, site.cluster, site.clock)->from_disk) << text;
    }
}

TEST(Queues, AreStillFoundWhenNothingCanBeKept)
{
    Site site;
    site.store.full = true;
    site.asked_and_kept();
    EXPECT_FALSE(site.asked_and_kept().from_disk);
}

TEST(Queues, NeedSlurmWhenNothingIsKept)
{
    Site site;
    site.cluster.silent = true;
    EXPECT_EQ(find_queues(site.store, site.cluster, site.clock).error().kind,
              Error::Kind::unreachable);
}

} // namespace
} // namespace gpuq
