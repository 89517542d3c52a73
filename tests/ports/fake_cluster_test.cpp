// SPDX-License-Identifier: GPL-2.0-or-later
// Checks the fake against the contract of the real Slurm.
#include "contract/accounting_contract.h"
#include "contract/cluster_contract.h"
#include "fakes/fake_cluster.h"
#include "ports/accounting.h"
#include "ports/cluster.h"

namespace gpuq {
namespace {

std::shared_ptr<Cluster> two_nodes()
{
    auto cluster = std::make_shared<fakes::FakeCluster>();
    cluster->runs_steps = true;
    cluster->queues = {
        Partition{"calibration", {}, {}, /*is_default=*/true, true, false, "n[0-1]"}};
    for (const char* name : {"n0", "n1"}) {
        Node node;
        node.name = name;
        node.gpus = {NodeGpus{"k80", 4, 0}};
        node.partitions = {"calibration"};
        cluster->machines.push_back(node);
    }
    return cluster;
}

INSTANTIATE_TEST_SUITE_P(Fake, ClusterContract, ::testing::Values(ClusterMaker{"fake", two_nodes}));

AccountingMaker::Made with_a_past_job()
{
    auto accounting = std::make_shared<fakes::FakeAccounting>();
    PastJob past{JobId{7}};
    past.state = JobState::completed;
    accounting->past[past.id] = past;
    accounting->uses = {
        {past.id, "ada", "physics", "calibration", std::chrono::seconds(5), 2, {{"k80", 2}}}};
    accounting->granted["ada"] = {{"physics", true, {}}};
    return {accounting, past.id, "calibration"};
}

INSTANTIATE_TEST_SUITE_P(Fake, AccountingContract,
                         ::testing::Values(AccountingMaker{"fake", with_a_past_job}));

TEST(FakeCluster, ALostAnswerMakesTheJobAllTheSame)
{
    fakes::FakeCluster cluster;
    cluster.lost_answers = 1;
    EXPECT_EQ(cluster.start_now({}, {"supervisor"}, false, {}).error().kind,
              Error::Kind::unreachable);
    EXPECT_EQ(cluster.own_jobs()->size(), 1U);
    EXPECT_TRUE(cluster.start_now({}, {"supervisor"}, false, {}));
}

TEST(FakeCluster, IsSilentForAsLongAsItIsTold)
{
    fakes::FakeCluster cluster;
    cluster.silent_for = 2;
    EXPECT_FALSE(cluster.own_jobs());
    EXPECT_FALSE(cluster.submit({}, "", {}));
    EXPECT_TRUE(cluster.own_jobs()->empty());
}

} // namespace
} // namespace gpuq
