// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/decide.h"

#include "policy/cases.h"
#include "policy/objects.h"
#include "policy/queue_partitions.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace gpuq::policy {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Outcome = Verdict::Outcome;
using Strings = std::vector<std::string>;

Policy criann()
{
    std::ifstream file(std::string(GPUQ_POLICIES_DIR) + "/criann.yaml");
    std::ostringstream text;
    text << file.rdbuf();
    return read_policy(text.str(), "/etc/gpuq/policy.yaml")->policy;
}

Submission job(std::optional<std::uint32_t> minutes, const std::string& gpus)
{
    Submission job;
    job.user_name = "alice";
    job.account = "physics";
    job.time_limit = minutes;
    job.tres.per_node = gpus;
    return job;
}

TEST(Decide, RoutesByTimeAndGivesEveryPool)
{
    const Verdict verdict = decide(criann(), job(120, "gres:gpu:1"), {});
    EXPECT_EQ(verdict.outcome, Outcome::accept);
    EXPECT_EQ(verdict.queue, "calibration");
    EXPECT_EQ(verdict.qos, "gpuq_calibration");
    EXPECT_THAT(verdict.partitions,
                ElementsAre("calibration", "calibration-visu", "calibration-lab",
                            "calibration-more", "calibration-visu-more", "calibration-lab-more",
                            "calibration-main"));
    EXPECT_EQ(verdict.time_limit, std::nullopt);
    EXPECT_THAT(verdict.messages, IsEmpty());
    EXPECT_EQ(decide(criann(), job(121, "gres:gpu:1"), {}).queue, "long");
}

TEST(Decide, TakesRunsOfGpuqOnlyWhereThePolicySaysSo)
{
    Policy policy = criann();
    for (Queue& queue : policy.queues) {
        if (queue.name == "calibration") {
            queue.through = Rule<std::string>{"gpuq", 65, 5};
        }
    }
    Submission plain = job(60, "gres:gpu:1");
    plain.partition = "calibration";
    for (const char* comment : {"", "gpuq", "GPUQ:x", "my gpuq:x"}) {
        plain.comment = comment;
        EXPECT_THAT(decide(policy, plain, {}).messages,
                    ElementsAre("queue calibration takes runs of gpuq only: gpuq run, gpuq shell "
                                "(policy.yaml:65)"));
    }
    Submission run = plain;
    run.comment = "gpuq:0123";
    EXPECT_EQ(decide(policy, run, {}).queue, "calibration");
    // The other rules apply to gpuq's runs as well.
    run.time_limit = 121;
    EXPECT_EQ(decide(policy, run, {}).outcome, Outcome::refuse);
    // A job without a queue is routed to the next queue that accepts it.
    plain.partition.reset();
    EXPECT_EQ(decide(policy, plain, {}).queue, "long");
    EXPECT_THAT(decide(policy, plain, {}).declined,
                Contains(HasSubstr("calibration takes runs of gpuq only")));
}

TEST(Decide, RefusesWithTheRuleOfEveryQueue)
{
    const Verdict verdict = decide(criann(), job(49 * 60, "gres:gpu:1"), {});
    EXPECT_EQ(verdict.outcome, Outcome::refuse);
    ASSERT_EQ(verdict.messages.size(), 5U);
    EXPECT_EQ(verdict.messages[0], "no queue takes this job (policy.yaml)");
    EXPECT_THAT(verdict.messages[1], HasSubstr("queue visu is for accounts visu only; ask "
                                               "support@criann.example (policy.yaml:"));
    EXPECT_THAT(verdict.messages[4], HasSubstr("queue long takes at most 2 days a job"));
}

TEST(Decide, AJobWithoutATimeIsToldWhatItGets)
{
    const Verdict verdict = decide(criann(), job(std::nullopt, "gres:gpu:1"), {});
    EXPECT_EQ(verdict.queue, "calibration");
    EXPECT_EQ(verdict.time_limit, 60U);
    ASSERT_EQ(verdict.messages.size(), 1U);
    EXPECT_THAT(verdict.messages[0],
                HasSubstr("queue calibration ends the job after 1 h; -t sets"));
}

TEST(Decide, AModelChoosesThePoolsThatHaveIt)
{
    const Verdict verdict = decide(criann(), job(60, "gres:gpu:p100:2"), {});
    EXPECT_THAT(verdict.partitions, ElementsAre("calibration-lab", "calibration-lab-more"));
    EXPECT_THAT(
        decide(criann(), job(60, "gres:gpu:a100:1"), {}).messages,
        testing::Contains(HasSubstr("a100 is not a GPU model of queue calibration, which has k80, "
                                    "p100, v100")));
}

TEST(Decide, GpusOfOneNodeHaveToFit)
{
    EXPECT_THAT(decide(criann(), job(60, "gres:gpu:3"), {}).partitions,
                testing::Not(testing::Contains("calibration-visu")));
    Submission many = job(60, "gres:gpu:5");
    many.partition = "long";
    EXPECT_THAT(decide(criann(), many, {}).messages,
                ElementsAre(HasSubstr("5 GPUs on one node are more than a node of queue long")));
}

TEST(Decide, AJobBeyondAnyHardLimitIsRefusedAndOneBeyondASoftLimitIsNot)
{
    Submission one = job(180, "");
    one.tres.per_job = "gres:gpu:16";
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.tres.per_job = "gres:gpu:17"; // more than a user may hold at once (16)
    EXPECT_THAT(
        decide(criann(), one, {}).messages,
        testing::Contains(HasSubstr("queue long gives a job at most 16 GPUs (policy.yaml:")));
    EXPECT_EQ(decide(criann(), job(120, "gres:gpu:4"), {}).queue, "calibration");
}

TEST(Decide, NobodyWalksAroundARuleBySpelling)
{
    for (const char* gpus : {"gres:gpu:5", "gres/gpu:5", "gres/gpu=5", "gpu:5", "gres:gpu:v100:5",
                             "gres:gpu:2,gres:gpu:v100:3"}) {
        Submission one = job(60, "");
        one.tres.per_job = gpus;
        EXPECT_NE(decide(criann(), one, {}).queue, "calibration") << gpus;
    }
    Submission tasks = job(60, "");
    tasks.tres.per_task = "gres:gpu:1";
    tasks.num_tasks = 5;
    tasks.cpus_per_task = 1;
    EXPECT_EQ(decide(criann(), tasks, {}).queue, "long");
    Submission sockets = job(60, "");
    sockets.tres.per_socket = "gres:gpu:2";
    sockets.sockets_per_node = 2;
    sockets.min_nodes = 2;
    EXPECT_EQ(gpu_totals(sockets).total, 8U);
    Submission both = job(60, "gres:gpu:2");
    both.tres.per_job = "gres:gpu:4";
    both.min_nodes = 2;
    EXPECT_EQ(gpu_totals(both).total, 4U) << "the same GPUs, said twice";
}

/// sbatch --ntasks-per-gpu=1 -n 12: Slurm derives twelve GPUs from it.
TEST(Decide, TasksForEachGpuAreGpus)
{
    Submission one = job(60, "");
    one.num_tasks = 12;
    one.ntasks_per_tres = 1;
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.partition = "calibration";
    EXPECT_THAT(decide(criann(), one, {}).messages, ElementsAre(HasSubstr("at most 4 GPUs")));
    one.num_tasks = 2;
    EXPECT_EQ(decide(criann(), one, {}).queue, "calibration");
}

/// Slurm takes the last count of a type in a string, and numbers as strtoull(3) reads them.
TEST(Decide, RefusesGpusThatSlurmCountsDifferently)
{
    for (const char* gpus :
         {"gres:gpu:3,gres:gpu:1", "gres:gpu:v100:3,gres:gpu:v100:1", "gres:gpu,gres:gpu:1",
          "gres:gpu:+4", "gres:gpu: 4", "gres:gpu:v100:+4", "gres:gpu:v100:4b", "gres:gpu:v100:1m",
          "gres:gpu:0x4", "gres:gpu:4.0", "gres:gpu:", "gres:gpu::4", "gres:gpu:v100:2:2",
          "gres:gpu:1,xgres:gpu:3", "xgres:gpu:4", "gres:gpu:1,gpu:3", "gres:gpu:1,gres/gpu:v100:3",
          "gpu:1"}) {
        Submission one = job(180, gpus);
        one.partition = "long";
        EXPECT_THAT(decide(criann(), one, {}).messages,
                    ElementsAre(HasSubstr("Slurm may count these GPUs differently")))
            << gpus;
        Submission before = job(180, "gres:gpu:1");
        before.partition = "long";
        EXPECT_EQ(decide_change(criann(), before, one, false).outcome, Outcome::refuse) << gpus;
    }
    for (const char* gpus :
         {"gres:gpu", "gres:gpu:2", "gres:gpu=2", "gres:gpu:v100", "gres/gpu:v100=2",
          "gres:gpu:v100:2,gres:tmp:3", "gres:tmp:3,gres:gpu:02"}) {
        EXPECT_EQ(decide(criann(), job(180, gpus), {}).queue, "long") << gpus;
    }
    Submission memory = job(180, "gres:gpu:1");
    memory.tres.mem = "gres:gpu:+60000";
    EXPECT_EQ(decide(criann(), memory, {}).outcome, Outcome::refuse);
}

/// sbatch --gpus=4 --gpus-per-socket=1 --sockets-per-node=1 gets one GPU.
TEST(Decide, RefusesGpusOfSocketsBesidesATotal)
{
    Submission one = job(180, "");
    one.tres.per_socket = "gres:gpu:1";
    one.sockets_per_node = 1;
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.tres.per_job = "gres:gpu:4";
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse);
    one.tres.per_task = std::exchange(one.tres.per_job, "");
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse);
}

/// sbatch --gpus=3 --gres=gpu:1 -n 2 -O gets two GPUs.
TEST(Decide, RefusesATotalThatNeedsMoreNodesThanTheJobHasTasks)
{
    Submission one = job(180, "gres:gpu:1");
    one.tres.per_job = "gres:gpu:3";
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.num_tasks = 3;
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.num_tasks = 2;
    EXPECT_THAT(decide(criann(), one, {}).messages, ElementsAre(HasSubstr("request them once")));
    one.tres.per_node = "gres:gpu:2";
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
}

/// A client of libslurm with min_nodes = 0 and max_nodes = 4 gets 28 CPUs with four GPUs.
TEST(Decide, RefusesAMinimumOfNoNodes)
{
    Submission one = job(180, "gres:gpu:1");
    one.min_nodes = 0;
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.max_nodes = 1;
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.max_nodes = 2;
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse);
}

/// sbatch --gres=gpu:1 -N 2 --gres-flags=enforce-binding gets 10 CPUs of 8.
TEST(Decide, RefusesToBindCoresToGpus)
{
    Submission one = job(60, "gres:gpu:1");
    one.tres.bound = true;
    EXPECT_THAT(decide(criann(), one, {}).messages, ElementsAre(HasSubstr("leave it out")));
    one.tres.bound = false;
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::accept);
}

TEST(Decide, ThePartsOfAHeterogeneousJobAreNotTaken)
{
    Submission part = job(60, "gres:gpu:1");
    part.het_job_offset = 0;
    EXPECT_THAT(decide(criann(), part, {}).messages,
                ElementsAre(HasSubstr("a heterogeneous job (sbatch A : B) is not possible")));
    part.partition = "long";
    EXPECT_EQ(decide_change(criann(), part, part, false).outcome, Outcome::refuse);
    part.partition = "elsewhere";
    EXPECT_EQ(decide(criann(), part, {}).outcome, Outcome::outside);
}

TEST(Decide, AnAccountIsTheSameInBothCases)
{
    Submission asked = job(600, "gres:gpu:p100:1");
    asked.account = "LAB";
    EXPECT_EQ(decide(criann(), asked, {}).queue, "lab");
}

TEST(Decide, InnerPartitionsLeadToTheirQueue)
{
    Submission one = job(60, "gres:gpu:1");
    one.partition = "calibration-main";
    EXPECT_EQ(decide(criann(), one, {}).partitions.front(), "calibration");
    one.time_limit = 180;
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse);
    one.partition = "calibration,long";
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
    one.partition = "calibration,cpu";
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse);
    one.partition = "cpu";
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::outside);
}

TEST(Decide, AQosOfOnesOwnIsRefused)
{
    Submission one = job(60, "gres:gpu:1");
    one.qos = "normal";
    EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse);
    one.qos = "gpuq_long";
    EXPECT_EQ(decide(criann(), one, {}).queue, "long");
}

TEST(Decide, JobsWithoutGpusAreLeftAlone)
{
    EXPECT_EQ(decide(criann(), job(60, ""), {}).outcome, Outcome::outside);
}

/// Slurm does not count shares as GPUs: with them, a user could use all GPUs in spite of any limit.
TEST(Decide, SharesOfGpusAreRefusedHoweverTheyAreRequested)
{
    const std::string reason =
        "queue calibration gives whole GPUs only, no shares of them (shard, mps) (policy.yaml:63)";
    Policy with_default = criann();
    with_default.default_queue = {"long", 1};
    for (const char* tres : {"gres:shard:1", "gres/mps:50", "shard", "gres:gpu:1,gres:shard:k80:1",
                             "gres:shard=1", "gres:shard:0"}) {
        Submission one = job(60, tres);
        EXPECT_EQ(decide(criann(), one, {}).outcome, Outcome::refuse) << tres;
        EXPECT_EQ(decide(with_default, one, {}).outcome, Outcome::refuse) << tres;
        one.partition = "calibration";
        EXPECT_THAT(decide(with_default, one, {}).messages, ElementsAre(reason)) << tres;
        for (auto field :
             {&SubmittedTres::per_job, &SubmittedTres::per_task, &SubmittedTres::per_socket}) {
            Submission other = job(60, "gres:gpu:1");
            other.partition = "calibration";
            other.tres.*field = tres;
            EXPECT_THAT(decide(with_default, other, {}).messages, ElementsAre(reason)) << tres;
        }
        Submission before = job(60, "gres:gpu:1");
        before.partition = "calibration";
        Submission after = before;
        after.tres.per_node = tres;
        EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse) << tres;
    }
    EXPECT_EQ(decide(criann(), job(60, "gres:shards:1"), {}).outcome, Outcome::outside);
}

TEST(Decide, AQueueIsForJobsWithGpus)
{
    Submission idle = job(60, "");
    idle.partition = "calibration";
    EXPECT_THAT(decide(criann(), idle, {}).messages,
                ElementsAre("queue calibration is for jobs with GPUs (policy.yaml:63)"));
    Policy with_default = criann();
    with_default.default_queue = {"long", 1};
    EXPECT_EQ(decide(with_default, idle, {}).queue, "calibration");
    idle.partition.reset();
    EXPECT_EQ(decide(with_default, idle, {}).queue, "long");
}

/// All spellings in sbatch; the fields are those sent by sbatch 22.05.
TEST(Decide, NoJobHoldsTheCoresOrTheMemoryOfOtherPeoplesGpus)
{
    const auto verdict = [](auto change) {
        Submission one = job(60, "gres:gpu:1"); // with 4 CPUs and 16 GiB
        one.partition = "calibration";
        change(one);
        return decide(criann(), one, {});
    };
    const auto taken = [&](auto change) { return verdict(change).outcome == Outcome::accept; };
    EXPECT_TRUE(taken([](Submission& one) { ask_for(one, 4, 16 * 1024); }));
    EXPECT_THAT(verdict([](Submission& one) { ask_for(one, 5, {}); }).messages,
                ElementsAre("queue calibration gives 4 CPUs and 16 GiB with each GPU, and no more "
                            "(policy.yaml:68)"));
    EXPECT_FALSE(taken([](Submission& one) { ask_for(one, {}, 16 * 1024 + 1); }));
    EXPECT_FALSE(taken([](Submission& one) { ask_for(one, {}, 0); }));
    EXPECT_FALSE(taken([](Submission& one) { one.min_cpus = 5; }));
    EXPECT_FALSE(taken([](Submission& one) { one.pn_min_cpus = 5; }));
    EXPECT_FALSE(taken([](Submission& one) { one.num_tasks = 5; }));
    EXPECT_FALSE(taken([](Submission& one) { one.ntasks_per_node = 5; }));
    EXPECT_FALSE(taken([](Submission& one) { one.ntasks_per_tres = 5; }));
    EXPECT_FALSE(taken([](Submission& one) { one.tres.cpus = "gres:gpu:5"; }));
    EXPECT_FALSE(taken([](Submission& one) { one.tres.mem = "gres:gpu:16385"; }));
    EXPECT_TRUE(taken([](Submission& one) { one.tres.mem = "gres:gpu:16384"; }));
    EXPECT_FALSE(taken([](Submission& one) { one.min_mem_per_cpu = 4097; })); // times 4 CPUs
    EXPECT_TRUE(taken([](Submission& one) { one.min_mem_per_cpu = 4096; }));
    EXPECT_TRUE(taken([](Submission& one) {
        one.tres.per_node = "gres:gpu:2";
        ask_for(one, 8, 32 * 1024);
    }));
}

/// Verdict of queue calibration, with 4 CPUs and 16 GiB per GPU on cores with two threads, on a
/// modified job: `accepted` or the first message.
template <typename Change>
std::string answer_to(Change change)
{
    Submission one = job(60, "gres:gpu:1");
    one.partition = "calibration";
    change(one);
    const Verdict verdict = decide(criann(), one, {});
    return verdict.outcome == Outcome::accept ? "accepted" : verdict.messages.at(0);
}

TEST(Decide, ChecksTheWholeCoresThatSlurmAllocates)
{
    const auto whole = HasSubstr("Slurm allocates whole cores, which would be more");
    EXPECT_EQ(answer_to([](Submission& one) { one.cpus_per_task = 4; }), "accepted");
    EXPECT_THAT(answer_to([](Submission& one) {
                    one.cpus_per_task = 4;
                    one.threads_per_core = 1;
                }),
                whole);
    EXPECT_EQ(answer_to([](Submission& one) {
                  one.cpus_per_task = 2;
                  one.threads_per_core = 1;
              }),
              "accepted");
    EXPECT_THAT(answer_to([](Submission& one) { one.threads_per_core = 1; }), whole)
        << "the CPUs that come with its GPU by default are threads of as many cores";
    EXPECT_THAT(answer_to([](Submission& one) {
                    one.num_tasks = 4;
                    one.ntasks_per_core = 1;
                }),
                whole);
    // A core for each CPU that is not one of a task's.
    EXPECT_THAT(answer_to([](Submission& one) { one.ntasks_per_core = 1; }), whole);
    EXPECT_THAT(answer_to([](Submission& one) {
                    one.ntasks_per_core = 1;
                    one.tres.cpus = "gres:gpu:4";
                }),
                whole);
    EXPECT_THAT(answer_to([](Submission& one) {
                    one.ntasks_per_core = 1;
                    one.cpus_per_task = 1;
                    one.pn_min_cpus = 4;
                }),
                whole);
    EXPECT_EQ(answer_to([](Submission& one) {
                  one.ntasks_per_core = 1;
                  one.cpus_per_task = 4;
              }),
              "accepted");
    EXPECT_EQ(answer_to([](Submission& one) { one.ntasks_per_core = 2; }), "accepted");
    EXPECT_THAT(answer_to([](Submission& one) {
                    one.cpus_per_task = 1; // allocated two
                    one.min_mem_per_cpu = 9000;
                }),
                whole);
    EXPECT_EQ(answer_to([](Submission& one) {
                  one.cpus_per_task = 3;
                  one.min_mem_per_cpu = 4096;
              }),
              "accepted");
}

TEST(Decide, ChecksTheNodesThatSlurmMayGive)
{
    const auto spread = HasSubstr("apply to every node that the job may get");
    const auto in_long = [](auto change) {
        return answer_to([&](Submission& one) {
            one.partition = "long";
            change(one);
        });
    };
    const auto per_job = [](Submission& one, const char* gpus) {
        one.tres.per_node.clear();
        one.tres.per_job = gpus;
    };
    EXPECT_THAT(in_long([&](Submission& one) {
                    per_job(one, "gres:gpu:2");
                    one.min_mem_per_node = 65536;
                }),
                spread);
    EXPECT_EQ(in_long([&](Submission& one) {
                  per_job(one, "gres:gpu:2");
                  one.min_nodes = one.max_nodes = 1;
                  one.min_mem_per_node = 65536;
              }),
              "accepted");
    EXPECT_THAT(in_long([&](Submission& one) {
                    per_job(one, "gres:gpu:2");
                    one.min_nodes = 1;
                    one.max_nodes = 4;
                    one.min_mem_per_node = 65536;
                }),
                spread);
    EXPECT_THAT(in_long([&](Submission& one) {
                    one.tres.per_node.clear();
                    one.tres.per_task = "gres:gpu:1";
                    one.num_tasks = 2;
                    one.ntasks_per_node = 1;
                    one.min_mem_per_node = 65536;
                }),
                HasSubstr("4 CPUs and 32 GiB with each GPU, and no more"));
    EXPECT_EQ(answer_to([&](Submission& one) {
                  per_job(one, "gres:gpu:2");
                  one.min_mem_per_node = 32768;
              }),
              "accepted")
        << "calibration gives a job one node";
    EXPECT_THAT(in_long([](Submission& one) {
                    one.min_nodes = 1;
                    one.max_nodes = 20;
                }),
                HasSubstr("gives a job at most"));
}

/// Slurm 24.11 gives each node of such a job the CPUs of the one with the most GPUs.
TEST(Decide, CountsOnTheMostUnevenLayoutOfATotalOfGpus)
{
    const auto uneven = HasSubstr("use --gpus-per-node");
    const auto in_long = [](const char* gpus, std::uint32_t nodes, auto change) {
        return answer_to([&](Submission& one) {
            one.partition = "long";
            one.tres.per_node.clear();
            one.tres.per_job = gpus;
            one.min_nodes = nodes;
            change(one);
        });
    };
    const auto as_is = [](Submission&) {};
    EXPECT_THAT(in_long("gres:gpu:3", 2, as_is), uneven); // 2 + 1
    EXPECT_THAT(in_long("gres:gpu:3", 2,
                        [](Submission& one) {
                            one.tres.per_task = "gres:gpu:1";
                            one.num_tasks = 3;
                            one.tres.per_job.clear();
                        }),
                uneven);
    EXPECT_EQ(in_long("gres:gpu:2", 2, as_is), "accepted");
    EXPECT_EQ(in_long("gres:gpu:2", 1, as_is), "accepted");
    const auto one_task = [](Submission& one) { one.ntasks_per_node = 1; };
    EXPECT_THAT(in_long("gres:gpu:2", 2, one_task), uneven); // a core more on the first node
    EXPECT_EQ(in_long("gres:gpu:8", 2, one_task), "accepted");
    EXPECT_EQ(in_long("gres:gpu:3", 2, [](Submission& one) { one.cpus_per_task = 1; }), "accepted");
    EXPECT_THAT(in_long("gres:gpu:3", 2, [](Submission& one) { one.tres.cpus = "gres:gpu:4"; }),
                uneven);
    EXPECT_EQ(in_long("gres:gpu:3", 2, [](Submission& one) { one.tres.cpus = "gres:gpu:2"; }),
              "accepted");
    EXPECT_THAT(in_long("gres:gpu:3", 1,
                        [](Submission& one) {
                            one.num_tasks = 2;
                            one.ntasks_per_node = 1;
                        }),
                uneven);
}

TEST(Decide, ANodeToOneselfGoesWithAllOfItsGpus)
{
    const auto alone = [](std::uint32_t shared, const std::string& gpus) {
        Submission one = job(60, gpus);
        one.partition = "calibration";
        one.shared = shared;
        return decide(criann(), one, {});
    };
    for (const std::uint32_t exclusive : {0U, 2U, 3U, 4U}) {
        EXPECT_THAT(alone(exclusive, "gres:gpu:1").messages,
                    ElementsAre("queue calibration gives a whole node only with all of its GPUs: "
                                "ask for those, or leave --exclusive out (policy.yaml:66)"));
        EXPECT_THAT(alone(exclusive, "gres:gpu:p100:4").partitions,
                    ElementsAre("calibration-lab", "calibration-lab-more"));
    }
    EXPECT_EQ(alone(1, "gres:gpu:1").outcome, Outcome::accept);
    Submission all = job(60, "gres:gpu:4");
    all.partition = "calibration";
    ask_for(all, 64, 0);
    EXPECT_EQ(decide(criann(), all, {}).outcome, Outcome::accept); // with all cores and memory

    Policy unsaid = criann(); // no GPU counts: Slurm gives an exclusive job all GPUs of its nodes
    for (Pool& pool : unsaid.pools) {
        pool.gpus.value.clear();
    }
    Submission one = job(60, "gres:gpu:1");
    one.shared = 0;
    EXPECT_EQ(decide(unsaid, one, {}).outcome, Outcome::accept);
    one.shared = 2;
    EXPECT_EQ(decide(unsaid, one, {}).outcome, Outcome::refuse);
}

TEST(Decide, ACoursesPeopleGoToItsNodesWhileItIsOn)
{
    Submission student = job(60, "gres:gpu:1");
    student.account = "course-dl";
    EXPECT_EQ(decide(criann(), student, {}).reservation, "");
    const Verdict verdict = decide(criann(), student, {"deep-learning-2026"});
    EXPECT_EQ(verdict.reservation, "deep-learning-2026");
    EXPECT_THAT(verdict.partitions, ElementsAre("calibration-lab", "calibration-lab-more"));
    EXPECT_EQ(decide(criann(), job(60, "gres:gpu:1"), {"deep-learning-2026"}).reservation, "");
    student.time_limit = 180;
    EXPECT_EQ(decide(criann(), student, {"deep-learning-2026"}).queue, "long");
}

const std::string k_shared = "version: 1\n"
                             "pools:\n"
                             "  whole: {nodes: n1, gpus: 'a10:4'}\n"
                             "  desks: {nodes: 'd[1-5]', gpus: 'a10:1', shares: {per_gpu: 4}}\n"
                             "queues:\n"
                             "  lessons:\n"
                             "    time: 2h\n"
                             "    pools: [whole, desks]\n"
                             "    per_gpu: {cpus: 6, memory: 24G}\n"
                             "    limits: {user: {shares: 3}, job: {gpus: 1}}\n"
                             "  other: {time: 48h, pools: whole}\n";

Submission share_job(const std::string& gres)
{
    Submission one = job(60, gres);
    one.min_nodes = 1;
    return one;
}

TEST(Decide, AShareOfAGpuGoesToAPoolThatHasShares)
{
    const Rules rules(read_policy(k_shared, "p.yaml")->policy);
    const Verdict verdict = decide(rules, share_job("gres:shard:1"), {});
    EXPECT_EQ(verdict.queue, "lessons") << testing::PrintToString(verdict.messages);
    EXPECT_THAT(verdict.partitions, ElementsAre("lessons-desks"));
    EXPECT_EQ(verdict.memory_mib, 6U * 1024);
    EXPECT_EQ(decide(rules, share_job("gres/shard:3"), {}).memory_mib, 18U * 1024);
    EXPECT_EQ(decide(rules, share_job("shard"), {}).queue, "lessons");
    // Whole GPUs keep their pools, and their default memory.
    EXPECT_THAT(decide(rules, share_job("gres:gpu:1"), {}).partitions,
                ElementsAre("lessons", "lessons-desks"));
    EXPECT_EQ(decide(rules, share_job("gres:gpu:1"), {}).memory_mib, std::nullopt);
}

TEST(Decide, AShareHasItsPartOfTheCoresAndTheMemory)
{
    Policy policy = read_policy(k_shared, "p.yaml")->policy;
    for (Pool& pool : policy.pools) {
        pool.threads_per_core = Rule<int>{1, 3, 1};
    }
    policy.queues.pop_back();
    const Rules rules(policy);
    const auto refusal = [&](auto&& change) {
        Submission one = share_job("gres:shard:2");
        change(one);
        const Verdict verdict = decide(rules, one, {});
        return verdict.outcome == Outcome::accept ? "" : verdict.messages.front();
    };
    EXPECT_EQ(refusal([](Submission& one) { one.cpus_per_task = 3; }), "");
    EXPECT_THAT(refusal([](Submission& one) { one.cpus_per_task = 4; }),
                HasSubstr("gives 6 CPUs and 24 GiB with each GPU, and no more"));
    EXPECT_EQ(refusal([](Submission& one) { one.min_mem_per_node = 12 * 1024; }), "");
    EXPECT_THAT(refusal([](Submission& one) { one.min_mem_per_node = 12 * 1024 + 1; }),
                HasSubstr("and no more"));
    EXPECT_THAT(refusal([](Submission& one) { one.min_mem_per_node = 0; }),
                HasSubstr("and no more"));
    EXPECT_THAT(refusal([](Submission& one) { one.tres.cpus = "gres:gpu:6"; }),
                HasSubstr("and no more"));
    EXPECT_THAT(refusal([](Submission& one) { one.tres.mem = "gres:gpu:24576"; }),
                HasSubstr("and no more"));
    EXPECT_THAT(refusal([](Submission& one) { one.shared = 0; }), HasSubstr("whole node"));
}

TEST(Decide, SharesThatSlurmWouldMultiplyAreRefused)
{
    const Rules rules(read_policy(k_shared, "p.yaml")->policy);
    const auto refusal = [&](const Submission& one) {
        Submission in_lessons = one;
        in_lessons.partition = "lessons";
        const Verdict verdict = decide(rules, in_lessons, {});
        return verdict.outcome == Outcome::accept ? "" : verdict.messages.front();
    };
    const auto form = HasSubstr("gives shares of a GPU only as --gres=shard:N on one node");
    EXPECT_EQ(refusal(share_job("gres:shard:3")), "");
    EXPECT_EQ(refusal(share_job("gres:shard:4")),
              "queue lessons gives a job at most 3 shares of a GPU (p.yaml:10)");
    for (const char* gres : {"gres:mps:50", "gres:shard:1,gres:gpu:1", "gres:shard:1,gres:mps:1",
                             "gres:shard:a10:1", "gres:shard:0", "gres:shard:x"}) {
        EXPECT_THAT(refusal(share_job(gres)), form) << gres;
    }
    Submission nodes = share_job("gres:shard:1");
    nodes.min_nodes = 2;
    EXPECT_THAT(refusal(nodes), form);
    nodes.min_nodes = 1;
    nodes.max_nodes = 4;
    EXPECT_THAT(refusal(nodes), form);
    nodes.max_nodes = 1;
    EXPECT_EQ(refusal(nodes), "");
    Submission spread = share_job("gres:shard:1");
    spread.num_tasks = 2;
    spread.ntasks_per_node = 1;
    EXPECT_THAT(refusal(spread), form);
    for (auto member :
         {&SubmittedTres::per_job, &SubmittedTres::per_task, &SubmittedTres::per_socket}) {
        Submission other = share_job("gres:shard:1");
        other.tres.*member = "gres:shard:1";
        EXPECT_THAT(refusal(other), form);
    }
    Submission whole = share_job("gres:shard:1");
    whole.ntasks_per_tres = 1;
    whole.num_tasks = 1;
    EXPECT_THAT(refusal(whole), form);
    Submission elsewhere = share_job("gres:shard:1");
    elsewhere.partition = "other";
    EXPECT_THAT(decide(rules, elsewhere, {}).messages,
                ElementsAre("queue other gives whole GPUs only, no shares of them (shard, mps) "
                            "(p.yaml:11)"));
}

TEST(DecideChange, GpusInTheFormThatSlurmReads)
{
    Submission before = job(60, "gres:gpu:1");
    before.partition = "calibration";
    before.qos = "gpuq_calibration";
    for (const char* const tres :
         {"gpu:4", "gpu", "gpu:k80:2", "gres:gpu:1,gpu:3", "shard:1", "gres/gpu:1"}) {
        for (const auto field : {&SubmittedTres::per_job, &SubmittedTres::per_node,
                                 &SubmittedTres::per_task, &SubmittedTres::per_socket}) {
            Submission after = before;
            after.tres.*field = tres;
            EXPECT_THAT(
                decide_change(criann(), before, after, false).messages,
                ElementsAre(testing::HasSubstr("store this number of GPUs without giving them")))
                << tres;
        }
    }
    before.tres.per_node = "gpu:1"; // without a change
    EXPECT_EQ(decide_change(criann(), before, before, false).outcome, Outcome::accept);
    Submission newer = before; // a release that writes it in this form
    before.tres.per_node = "gres/gpu:2";
    newer.tres.per_node = "gres/gpu:1";
    EXPECT_EQ(decide_change(criann(), before, newer, false).outcome, Outcome::accept);
    EXPECT_EQ(decide_change(criann(), before, before, false).outcome, Outcome::accept);
}

TEST(DecideChange, NoChangeAddsSharesOfGpus)
{
    const Rules rules(read_policy(k_shared, "p.yaml")->policy);
    Submission before = share_job("gres:shard:1");
    before.partition = "lessons-desks";
    before.qos = "gpuq_lessons";
    Submission after = before;
    after.tres.per_node = "gres:shard:4";
    EXPECT_EQ(decide_change(rules, before, after, false).outcome, Outcome::refuse);
    after.tres.per_node = "gres:shard:3";
    const Verdict more = decide_change(rules, before, after, false);
    EXPECT_EQ(more.outcome, Outcome::accept);
    EXPECT_EQ(more.memory_mib, std::nullopt);
}

TEST(Decide, UsersOfAReservationGoToThePoolOfWhichItHasNodes)
{
    const std::vector<Reserved> reserved{{"gpuq:ada:ml", "calibration-lab", {"alice"}},
                                         {"gpuq:ada:none", "gone", {"alice"}}};
    const Verdict verdict = decide(criann(), job(60, "gres:gpu:1"), {}, reserved);
    EXPECT_EQ(verdict.reservation, "gpuq:ada:ml");
    EXPECT_THAT(verdict.partitions, ElementsAre("calibration-lab", "calibration-lab-more"));
    Submission other = job(60, "gres:gpu:1");
    other.user_name = "lena";
    EXPECT_EQ(decide(criann(), other, {}, reserved).reservation, "");
    Submission named = job(60, "gres:gpu:1");
    named.reservation = "own";
    EXPECT_EQ(decide(criann(), named, {}, reserved).reservation, "");
    // Courses come first.
    Submission student = job(60, "gres:gpu:1");
    student.account = "course-dl";
    EXPECT_EQ(decide(criann(), student, {"deep-learning-2026"}, reserved).reservation,
              "deep-learning-2026");
}

TEST(Decide, SaysThatNoPoolHasAllModels)
{
    Submission both = job(60, "");
    both.tres.per_job = "gres:gpu:k80:1,gres:gpu:p100:1";
    both.partition = "calibration";
    EXPECT_THAT(decide(criann(), both, {}).messages,
                ElementsAre(testing::StartsWith("k80 and p100 are together in no pool of queue "
                                                "calibration, and a job gets the nodes of one")));
}

TEST(DecideChange, NoRaiseLeadsPastTheRules)
{
    Submission before = job(60, "gres:gpu:1");
    before.partition = "calibration,calibration-visu";
    before.qos = "gpuq_calibration";
    Submission after = before;
    after.time_limit = 180;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
    after.time_limit = 90;
    const Verdict fine = decide_change(criann(), before, after, false);
    EXPECT_EQ(fine.outcome, Outcome::accept);
    EXPECT_THAT(fine.partitions, IsEmpty());
    after.tres.per_node = "gres:gpu:5";
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
}

TEST(DecideChange, NoJobGrowsPastWhatComesWithItsGpus)
{
    Submission before = job(60, "gres:gpu:1");
    before.partition = "calibration";
    Submission after = before;
    after.min_cpus = 2; // with one thread per core, which Slurm does not show, this makes four
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::accept);
    after.min_cpus = 4;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
    after.threads_per_core = 2;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::accept);
    after.min_cpus = 16;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
    after.min_cpus.reset();
    after.min_mem_per_node = 0;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
}

TEST(DecideChange, IsJudgedByWhatBecomesMore)
{
    Submission before = job(60, "gres:gpu:1");
    before.partition = "calibration";
    before.min_mem_per_cpu = 30000; // Slurm's default; the policy gives 16 GiB with one GPU
    Submission after = before;
    after.time_limit = 5;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::accept);
    after.time_limit = 90;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::accept);
    after.min_mem_per_cpu = 30001;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
    before.time_limit = 600; // allowed by an earlier policy
    after = before;
    after.time_limit = 599;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::accept);
    after.time_limit = 601;
    EXPECT_EQ(decide_change(criann(), before, after, false).outcome, Outcome::refuse);
}

TEST(DecideChange, AJobMayChangeItsQueueAndNotLeaveThePolicy)
{
    Submission before = job(60, "gres:gpu:1");
    before.partition = "calibration";
    before.qos = "gpuq_calibration";
    Submission after = before;
    after.partition = "long";
    EXPECT_THAT(decide_change(criann(), before, after, true).partitions, ElementsAre("long"));
    after.partition = "cpu";
    EXPECT_EQ(decide_change(criann(), before, after, true).outcome, Outcome::refuse);
}

TEST(Decide, TheFilesOwnTestsHold)
{
    for (const char* name : {"minimal.yaml", "workstation.yaml", "criann.yaml", "centre.yaml",
                             "teaching.yaml", "nights.yaml"}) {
        std::ifstream file(std::string(GPUQ_POLICIES_DIR) + "/" + name);
        std::ostringstream text;
        text << file.rdbuf();
        const Policy policy = read_policy(text.str(), name)->policy;
        for (const Case& test : policy.tests) {
            const Strings on = test.course ? Strings{*test.course} : Strings{};
            const Verdict verdict = decide(policy_of(test, policy), submission_of(test), on);
            EXPECT_EQ(verdict.queue, test.in.value_or("")) << name << ": " << test.name;
            if (!test.in) {
                EXPECT_THAT(verdict.messages, testing::Contains(HasSubstr(test.because)))
                    << name << ": " << test.name;
            }
        }
    }
}

TEST(Objects, SayThePolicyInSlurmsWords)
{
    const std::string text = slurm_conf_of(criann());
    EXPECT_THAT(
        text,
        HasSubstr("PartitionName=calibration AllowQos=gpuq_calibration "
                  "DefCpuPerGPU=4 DefMemPerGPU=16384 DefaultTime=0-01:00:00 "
                  "MaxTime=0-02:00:00 Nodes=gpu01 OverTimeLimit=0 PreemptMode=OFF PriorityTier=40 "
                  "QOS=gpuq_calibration_soft "));
    EXPECT_THAT(text, HasSubstr("PartitionName=calibration-visu-more "));
    EXPECT_THAT(text, HasSubstr("GraceTime=600"));
    EXPECT_THAT(text, HasSubstr("PreemptExemptTime=00:15:00\n"));
    EXPECT_THAT(text, testing::Not(HasSubstr("PriorityType")))
        << "of slurm.conf: a reconfiguration does not load it";
}

TEST(Objects, HaveEveryNameOnceAndInOrder)
{
    const auto objects = objects_of(criann());
    for (std::size_t i = 1; i < objects.size(); ++i) {
        EXPECT_LT(std::pair(objects[i - 1].kind, objects[i - 1].name),
                  std::pair(objects[i].kind, objects[i].name));
    }
}

} // namespace
} // namespace gpuq::policy
