// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/free_gpus.h"

#include "fakes/now.h"
#include "ports/job.h"
#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

Node node(const std::string& name, int total, std::optional<int> in_use,
          const std::string& model = "k80")
{
    Node node;
    node.name = name;
    node.gpus = {NodeGpus{model, total, in_use}};
    node.partitions = {"short", "long"};
    node.cpus = 32;
    node.cpus_in_use = in_use.value_or(0);
    return node;
}

std::vector<Partition> queues()
{
    return {Partition{"long", 48h, {}, false, true, false, ""},
            Partition{"short", 2h, {}, true, true, false, ""}};
}

Job running_job(std::uint32_t id, const std::string& node, int gpus, std::optional<Time> ends_at)
{
    Job job;
    job.id = JobId{id};
    job.state = JobState::running;
    job.ends_at = ends_at;
    job.held.whole = {HeldGpus{node, "k80", gpus}};
    return job;
}

Job pending_job(std::uint32_t id, std::uint32_t priority, const std::string& reason = "Resources")
{
    Job job;
    job.id = JobId{id};
    job.state = JobState::pending;
    job.partition = "short";
    job.priority = priority;
    job.reason = reason;
    job.gpus = 2;
    return job;
}

TEST(GpuPools, AddUpPerModelAndQueues)
{
    Node down = node("n2", 4, 1);
    down.up = false;
    Node other = node("n4", 2, 0);
    other.partitions = {"long"};
    const auto pools = gpu_pools(
        {queues(), {node("n0", 4, 1), node("n1", 4, 4), down, node("n3", 8, 0, "a100"), other}});
    EXPECT_EQ(pools, (std::vector<GpuPool>{
                         {"k80", {"long"}, 2, 2, 0, 0, 0, 2},
                         {"a100", {"long", "short"}, 8, 8, 0, 0, 0, 8},
                         {"k80", {"long", "short"}, 12, 3, 6, 3, 0, 3},
                     }));
}

/// Two GPUs of four shards each. `whole`: GPUs held as a whole.
Node shared_node(int whole, std::optional<int> in_use, std::optional<int> gpus)
{
    Node made = node("n0", 2, whole + gpus.value_or(0));
    made.cpus_in_use = 0;
    made.shares = {{GpuShare::Kind::shard, "k80", 4, 8, in_use, gpus}};
    return made;
}

TEST(GpuPools, CountTheFreeSharesOfTheirGpus)
{
    const auto shares = [](const std::vector<Node>& nodes) {
        return gpu_pools({queues(), nodes}).at(0).shares;
    };
    const auto of = [](int total, std::optional<int> free) {
        return PoolShares{GpuShare::Kind::shard, 4, total, free};
    };
    EXPECT_EQ(shares({node("n0", 2, 0)}), std::nullopt);
    EXPECT_EQ(shares({shared_node(0, 0, 0)}), of(8, 8));
    EXPECT_EQ(shares({shared_node(0, 3, 1)}), of(8, 5));
    EXPECT_EQ(shares({shared_node(1, 3, 1)}), of(8, 1));
    EXPECT_EQ(shares({shared_node(2, 0, 0)}), of(8, 0));
    EXPECT_EQ(shares({shared_node(0, 3, 1), node("n1", 2, 0)}), of(8, 5));
    EXPECT_EQ(shares({shared_node(0, 3, 1), shared_node(0, std::nullopt, 1)}),
              of(16, std::nullopt));
    Node busy = shared_node(0, 0, 0);
    busy.cpus_in_use = busy.cpus - 2; // each share needs a core
    EXPECT_EQ(shares({busy}), of(8, 2));
    Node down = shared_node(0, 0, 0);
    down.up = false;
    EXPECT_EQ(shares({down}), of(8, 0));
}

/// Every mixture of nodes that are up or not, reserved, short of cores, in no open queue, or of
/// unknown use.
TEST(GpuPools, AreTheSumsOfTheirNodes)
{
    for (unsigned seed = 0; seed < 512; ++seed) {
        Inventory inventory{queues(), {}};
        for (unsigned i = 0; i < 6; ++i) {
            const unsigned bits = seed * 2654435761U >> (4 * i);
            Node made = node("n" + std::to_string(i), 4, static_cast<int>(bits % 6),
                             bits % 7 == 0 ? "a100" : "k80");
            made.up = bits % 5 != 0;
            made.reserved = bits % 11 == 0;
            made.cpus_in_use = bits % 3 == 0 ? 30 : 8;
            if (bits % 13 == 0) {
                made.partitions = {"closed"};
            }
            if (bits % 17 == 0) {
                made.gpus.push_back({"a100", 2, std::nullopt});
            }
            inventory.nodes.push_back(made);
        }
        for (const GpuPool& pool : gpu_pools(inventory)) {
            GpuPool sum{pool.model, pool.queues, 0, 0, 0, 0, 0, 0};
            for (const NodeUse& one : nodes_of(pool, inventory)) {
                const bool is_known = sum.free && one.in_use;
                sum.total += one.total;
                sum.free = is_known ? std::optional(*sum.free + *free_on(one)) : std::nullopt;
                sum.in_use = is_known ? std::optional(*sum.in_use + *one.in_use) : std::nullopt;
                sum.most_on_one_node =
                    is_known ? std::optional(std::max(*sum.most_on_one_node, *free_on(one)))
                             : std::nullopt;
                sum.down += down_on(one).value_or(0);
                sum.blocked += one.blocked;
            }
            EXPECT_EQ(sum, pool) << seed;
        }
    }
}

TEST(GpuPools, DoNotCallFreeWhatNobodyCouldHave)
{
    Node reserved = node("n0", 4, 1);
    reserved.reserved = true;
    Node without_cores = node("n1", 4, 0);
    without_cores.cpus_in_use = 30;
    Node closed = node("n2", 4, 0);
    closed.partitions = {"closed"};
    auto partitions = queues();
    partitions.push_back({"closed", {}, {}, false, /*up=*/false, false, ""});
    const auto pools = gpu_pools({partitions, {reserved, without_cores, closed}});
    EXPECT_EQ(pools, (std::vector<GpuPool>{{"k80", {"closed"}, 4, 0, 0, 0, 4, 0},
                                           {"k80", {"long", "short"}, 8, 2, 1, 0, 5, 2}}));
}

TEST(GpuPools, KeepTheUnknownUnknown)
{
    const auto pools = gpu_pools({queues(), {node("n0", 4, 4), node("n1", 4, std::nullopt)}});
    ASSERT_EQ(pools.size(), 1U);
    EXPECT_EQ(pools[0].total, 8);
    EXPECT_EQ(pools[0].free, std::nullopt);
    EXPECT_EQ(pools[0].in_use, std::nullopt);
    EXPECT_EQ(is_one_free(pools), std::nullopt);
    EXPECT_EQ(is_one_free(gpu_pools({queues(), {node("n0", 4, 4)}})), false);
    EXPECT_EQ(is_one_free(gpu_pools({queues(), {node("n0", 4, 3)}})), true);
}

TEST(BestQueue, IsTheOpenOneWithTheSmallestLimit)
{
    const GpuPool pool{"k80", {"long", "short"}, 4, 4, 0, 0, 0, 4};
    EXPECT_EQ(best_queue(pool, queues())->name, "short");
    auto partitions = queues();
    partitions[1].up = false;
    EXPECT_EQ(best_queue(pool, partitions)->name, "long");
    EXPECT_EQ(best_queue({"k80", {"other"}, 4, 4, 0, 0, 0, 4}, queues()), std::nullopt);
}

TEST(NextFree, IsInTheOrderOfTheLimits)
{
    Node down = node("n9", 4, 4);
    down.up = false;
    const auto next = next_free(
        {node("n0", 4, 4), node("n1", 4, 4), down},
        {running_job(1, "n0", 2, std::nullopt), running_job(2, "n1", 4, k_now + 2h),
         running_job(3, "n0", 2, k_now + 1h), running_job(4, "n9", 4, k_now), pending_job(5, 1)});
    const Names both = {"long", "short"};
    EXPECT_EQ(next, (std::vector<NextFree>{{k_now + 1h, "k80", 2, both, "n0", JobId{3}},
                                           {k_now + 2h, "k80", 4, both, "n1", JobId{2}},
                                           {std::nullopt, "k80", 2, both, "n0", JobId{1}}}));
}

/// A job with one shard on the node "n0", whose GPUs are shared.
Job with_shard(std::uint32_t id, std::vector<int> gpus, std::optional<Time> ends_at)
{
    Job job = running_job(id, "n0", 0, ends_at);
    job.held.whole = {};
    job.held.shares = {{"n0", "k80", GpuShare::Kind::shard, 1, std::move(gpus)}};
    return job;
}

TEST(NextFree, IncludesSharesAndTheGpusWhoseLastShareItIs)
{
    const auto next = [](const std::vector<Job>& jobs) {
        std::vector<std::tuple<std::uint32_t, int, int>> found; // job, GPUs, shares
        for (const NextFree& one : next_free({shared_node(0, 4, 2)}, jobs)) {
            found.emplace_back(one.job.value, one.count, one.share ? one.share->parts : 0);
        }
        return found;
    };
    using Found = decltype(next({}));
    // Jobs 1 and 2 are on one GPU, 3 on the other; 2 ends last.
    EXPECT_EQ(next({with_shard(1, {0}, k_now + 1h), with_shard(2, {0}, k_now + 3h),
                    with_shard(3, {1}, k_now + 2h)}),
              (Found{{1, 0, 1}, {3, 1, 1}, {2, 1, 1}}));
    // A job without a limit keeps its GPU.
    EXPECT_EQ(next({with_shard(1, {0}, k_now + 1h), with_shard(2, {0}, std::nullopt)}),
              (Found{{1, 0, 1}, {2, 1, 1}}));
    // Where Slurm does not report the GPUs, one is free when the last job has ended.
    EXPECT_EQ(next({with_shard(1, {}, k_now + 1h), with_shard(2, {}, k_now + 3h),
                    with_shard(3, {1}, k_now + 2h)}),
              (Found{{1, 0, 1}, {3, 0, 1}, {2, 1, 1}}));
    EXPECT_EQ(next({with_shard(1, {0}, k_now + 1h), running_job(2, "n0", 1, k_now + 2h)}),
              (Found{{1, 1, 1}, {2, 1, 0}}));
    Node down = shared_node(0, 4, 2);
    down.up = false;
    EXPECT_TRUE(next_free({down}, {with_shard(1, {0}, k_now)}).empty());
}

TEST(NextFree, NamesTheModelOfSharesWithoutOne)
{
    Job job = with_shard(1, {0}, k_now + 1h);
    job.held.shares[0].model.clear();
    const auto next = next_free({shared_node(0, 1, 1)}, {job});
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(next[0].model, "k80");
    EXPECT_EQ(next[0].queues, (Names{"long", "short"}));
}

TEST(WaitingLine, IsOfThoseThatCouldStart)
{
    EXPECT_EQ(waiting_line({pending_job(1, 5), pending_job(2, 0, "JobHeldUser"),
                            pending_job(3, 5, "Dependency"), pending_job(4, 5, "Priority"),
                            running_job(5, "n0", 1, k_now)}),
              (WaitingLine{2, 4}));
}

TEST(JobsAhead, HaveAHigherPriorityOrAreOlder)
{
    const Job mine = pending_job(10, 100);
    Job elsewhere = pending_job(1, 900);
    elsewhere.partition = "long";
    Job in_both = pending_job(2, 900);
    in_both.partition = "long,short";
    AllJobs all{{mine, elsewhere, in_both, pending_job(3, 100), pending_job(11, 100),
                 pending_job(4, 99), pending_job(5, 900, "BeginTime"),
                 running_job(6, "n0", 1, k_now)},
                true};
    EXPECT_EQ(jobs_ahead(mine, all), 2);
    EXPECT_EQ(jobs_ahead(pending_job(10, 0, "JobHeldUser"), all), std::nullopt);
    all.complete = false;
    EXPECT_EQ(jobs_ahead(mine, all), std::nullopt);
}

} // namespace
} // namespace gpuq
