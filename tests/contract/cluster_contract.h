// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

/// The contract of Cluster, checked against the real implementation and the fake. Include it in one
/// file per test program and instantiate it. The cluster must be idle, and its default partition
/// must have one or more nodes with the same number of GPUs each.
namespace gpuq {

struct ClusterMaker {
    std::string name;
    std::function<std::shared_ptr<Cluster>()> make;
};

inline void PrintTo(const ClusterMaker& maker, std::ostream* out)
{
    *out << maker.name;
}

/// Polls until `condition()` is true, for at most ten seconds. Returns its last value.
template <typename Condition>
auto wait_for(const Condition& condition)
{
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    auto value = condition();
    while (!value && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        value = condition();
    }
    return value;
}

/// Reads a step's stream to the end and closes it.
inline std::string all_from(int fd)
{
    std::string all;
    std::array<char, 4096> bytes{};
    for (ssize_t size = 0; (size = ::read(fd, bytes.data(), bytes.size())) > 0;) {
        all.append(bytes.data(), static_cast<std::size_t>(size));
    }
    ::close(fd);
    return all;
}

/// Reads the first `size` bytes of a step's stream.
inline std::string first_from(int fd, std::size_t size)
{
    std::string all(size, '\0');
    std::size_t have = 0;
    for (ssize_t more = 0;
         have < size && (more = ::read(fd, all.data() + have, size - have)) > 0;) {
        have += static_cast<std::size_t>(more);
    }
    all.resize(have);
    return all;
}

class ClusterContract : public ::testing::TestWithParam<ClusterMaker> {
protected:
    ~ClusterContract() override
    {
        for (const JobId id : m_made) {
            EXPECT_TRUE(m_cluster.cancel(id));
        }
        for (const JobId id : m_made) {
            EXPECT_TRUE(ended(id)) << id.value;
        }
        // Slurm allocates nothing on a node whose last job is still completing.
        EXPECT_TRUE(wait_for([&] { return gpus_in_use() == 0; }));
        std::filesystem::remove_all(m_directory);
    }

    static Partition default_partition(Cluster& cluster)
    {
        const auto partitions = cluster.partitions();
        for (const Partition& partition : *partitions) {
            if (partition.is_default) {
                return partition;
            }
        }
        ADD_FAILURE() << "no default partition";
        return {};
    }

    static std::string make_directory()
    {
        std::string name = "/tmp/gpuq-contract-XXXXXX";
        return ::mkdtemp(name.data());
    }

    JobSpec spec(int gpus = 1) const
    {
        JobSpec spec;
        spec.name = "contract";
        spec.partition = m_partition.name;
        spec.comment = "gpuq:contract " + m_directory;
        spec.work_dir = "/tmp";
        spec.walltime = std::chrono::minutes(5);
        spec.gpus_per_node = gpus;
        return spec;
    }

    Cluster::Started start(const JobSpec& wanted, const std::vector<std::string>& step,
                           bool with_input = false)
    {
        auto started = m_cluster.start_now(wanted, step, with_input, {});
        if (!started) {
            ADD_FAILURE() << started.error().text;
            return {};
        }
        m_made.push_back(started->job);
        return *started;
    }

    JobId submit(const JobSpec& wanted, const std::string& script)
    {
        auto id = m_cluster.submit(wanted, script, {"PATH=/usr/bin:/bin"});
        if (!id) {
            ADD_FAILURE() << id.error().text;
            return {};
        }
        m_made.push_back(*id);
        return *id;
    }

    bool ended(JobId id)
    {
        return wait_for([&] {
            const auto job = m_cluster.job(id);
            return job ? is_over(job->state) : job.error().kind == Error::Kind::missing;
        });
    }

    int gpus_in_use()
    {
        int used = 0;
        const auto nodes = m_cluster.nodes();
        for (const Node& node : *nodes) {
            for (const NodeGpus& gpus : node.gpus) {
                used += gpus.in_use.value_or(0);
            }
        }
        return used;
    }

    int gpus_per_node() { return m_cluster.nodes().value().front().gpus.front().total; }

    std::size_t own_jobs_like(const JobSpec& wanted)
    {
        std::size_t count = 0;
        const auto jobs = m_cluster.own_jobs();
        for (const Job& job : *jobs) {
            count += job.comment == wanted.comment ? 1 : 0;
        }
        return count;
    }

    std::string m_directory = make_directory();
    std::shared_ptr<Cluster> m_owner = GetParam().make();
    Cluster& m_cluster = *m_owner;
    Partition m_partition = default_partition(m_cluster);
    std::vector<JobId> m_made;
};

TEST_P(ClusterContract, HasANameAndNodesWithGpus)
{
    EXPECT_NE(m_cluster.name().value(), "");
    const auto nodes = m_cluster.nodes().value();
    ASSERT_FALSE(nodes.empty());
    EXPECT_TRUE(nodes.front().up);
    EXPECT_THAT(nodes.front().partitions, ::testing::Contains(m_partition.name));
    EXPECT_GT(gpus_per_node(), 0);
    EXPECT_EQ(gpus_in_use(), 0);
}

TEST_P(ClusterContract, TheInventoryIsTheQueuesAndTheNodes)
{
    const auto inventory = m_cluster.inventory();
    ASSERT_TRUE(inventory);
    const auto has_name = [&](const Partition& one) { return one.name == m_partition.name; };
    EXPECT_THAT(inventory->partitions, ::testing::Contains(::testing::Truly(has_name)));
    ASSERT_FALSE(inventory->nodes.empty());
    EXPECT_EQ(inventory->nodes.front().name, m_cluster.nodes().value().front().name);
    EXPECT_FALSE(inventory->nodes.front().reserved);
}

TEST_P(ClusterContract, AllJobsTellWhatARunningOneHoldsWhere)
{
    const auto started = start(spec(2), {"sh", "-c", "echo; exec sleep 60"});
    ASSERT_EQ(first_from(started.process.output, 1), "\n");
    const auto all = m_cluster.all_jobs();
    ASSERT_TRUE(all);
    EXPECT_TRUE(all->complete);
    for (const Job& job : all->jobs) {
        if (job.id == started.job) {
            ASSERT_EQ(job.held.whole.size(), 1U);
            EXPECT_EQ(job.held.whole.front().node, job.batch_host);
            EXPECT_EQ(job.held.whole.front().count, 2);
            EXPECT_EQ(job.held.whole.front().model,
                      m_cluster.nodes().value().front().gpus.front().model);
            EXPECT_EQ(job.priority, std::nullopt);
        }
    }
    EXPECT_EQ(own_jobs_like(spec(2)), 1U);
    ::close(started.process.output);
    ::close(started.process.error);
}

TEST_P(ClusterContract, APendingJobHasAPriority)
{
    JobSpec second = spec();
    const auto first = start(spec(), {"sleep", "60"});
    ::close(first.process.output);
    ::close(first.process.error);
    second.after_ok = first.job;
    const JobId id = submit(second, "#!/bin/sh\n");
    const auto all = m_cluster.all_jobs();
    ASSERT_TRUE(all);
    const auto mine = std::find_if(all->jobs.begin(), all->jobs.end(),
                                   [&](const Job& job) { return job.id == id; });
    ASSERT_NE(mine, all->jobs.end());
    EXPECT_EQ(mine->state, JobState::pending);
    EXPECT_GT(mine->priority.value_or(0), 0U);
    EXPECT_TRUE(mine->held.whole.empty());
}

TEST_P(ClusterContract, StartsAStepWhoseStreamsComeApart)
{
    const auto started = start(spec(), {"sh", "-c", "echo words; echo complaints >&2"});
    EXPECT_EQ(all_from(started.process.output), "words\n");
    EXPECT_EQ(all_from(started.process.error), "complaints\n");
}

TEST_P(ClusterContract, TheStepReadsWhatIsWritten)
{
    const auto started = start(spec(), {"cat"}, /*with_input=*/true);
    ASSERT_EQ(::write(started.process.input, "a\nb\n", 4), 4);
    ::close(started.process.input);
    EXPECT_EQ(all_from(started.process.output), "a\nb\n");
    ::close(started.process.error);
}

TEST_P(ClusterContract, WithoutInputTheStepSeesItsEnd)
{
    const auto started = start(spec(), {"sh", "-c", "cat; echo end"});
    EXPECT_EQ(started.process.input, -1);
    EXPECT_EQ(all_from(started.process.output), "end\n");
    ::close(started.process.error);
}

TEST_P(ClusterContract, AnAllocationIsARunningJobUntilItIsCompleted)
{
    const auto started = start(spec(), {"sh", "-c", "echo; cat"}, /*with_input=*/true);
    ASSERT_EQ(first_from(started.process.output, 1), "\n");

    const auto job = m_cluster.job(started.job);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->state, JobState::running);
    EXPECT_EQ(job->comment, spec().comment);
    EXPECT_EQ(job->gpus, 1);
    EXPECT_FALSE(job->batch);
    EXPECT_NE(job->batch_host, "");
    EXPECT_EQ(own_jobs_like(spec()), 1U);
    EXPECT_EQ(gpus_in_use(), 1);
    EXPECT_TRUE(m_cluster.has_first_step(started.job).value());

    ASSERT_TRUE(m_cluster.complete(started.job, 3));
    ASSERT_TRUE(ended(started.job));
    EXPECT_EQ(m_cluster.job(started.job)->state, JobState::failed);
    EXPECT_EQ(m_cluster.job(started.job)->exit_status, 3);
    for (const int fd : {started.process.input, started.process.output, started.process.error}) {
        ::close(fd);
    }
}

TEST_P(ClusterContract, CompletedWithZeroIsASuccess)
{
    const auto started = start(spec(), {"echo"});
    all_from(started.process.output);
    ASSERT_TRUE(m_cluster.complete(started.job, 0));
    ASSERT_TRUE(ended(started.job));
    EXPECT_EQ(m_cluster.job(started.job)->state, JobState::completed);
    EXPECT_EQ(m_cluster.job(started.job)->exit_status, 0);
    EXPECT_TRUE(m_cluster.complete(started.job, 1)); // again: the job has already ended
    EXPECT_EQ(m_cluster.job(started.job)->state, JobState::completed);
    EXPECT_TRUE(m_cluster.cancel(started.job));
    ::close(started.process.error);
}

TEST_P(ClusterContract, BusyWhenNoGpuIsFreeAndNothingIsLeftWaiting)
{
    const auto nodes = m_cluster.nodes().value().size();
    for (std::size_t i = 0; i < nodes; ++i) {
        const auto started = start(spec(gpus_per_node()), {"sh", "-c", "echo; exec sleep 60"});
        ASSERT_EQ(first_from(started.process.output, 1), "\n");
        ::close(started.process.output);
        ::close(started.process.error);
    }
    JobSpec one_more = spec();
    one_more.comment += " one more";
    const auto refused = m_cluster.start_now(one_more, {"echo"}, false, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Error::Kind::busy);
    EXPECT_EQ(own_jobs_like(one_more), 0U);
}

TEST_P(ClusterContract, AsksForNothingWhenWhatComesBeforeFails)
{
    JobSpec wanted = spec();
    wanted.comment += " never";
    const auto refused = m_cluster.start_now(wanted, {"echo"}, false, [&]() -> Result<void> {
        EXPECT_EQ(own_jobs_like(wanted), 0U);
        return fail(Error::Kind::io, "the disk is full");
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Error::Kind::io);
    EXPECT_EQ(own_jobs_like(wanted), 0U);
}

TEST_P(ClusterContract, DeniesWhatCanNeverBe)
{
    JobSpec impossible = spec();
    impossible.partition = "no-such-partition";
    const auto started = m_cluster.start_now(impossible, {"echo"}, false, {});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().kind, Error::Kind::denied);
    EXPECT_THAT(started.error().text, ::testing::HasSubstr("partition"));
    const auto submitted = m_cluster.submit(impossible, "#!/bin/sh\n", {"A=b"});
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error().kind, Error::Kind::denied);
}

TEST_P(ClusterContract, ASubmittedJobIsOneOfOursUntilItIsCancelled)
{
    const JobId id = submit(spec(), "#!/bin/sh\nexec sleep 60\n");
    const auto job = m_cluster.job(id);
    ASSERT_TRUE(job);
    EXPECT_TRUE(job->batch);
    EXPECT_FALSE(is_over(job->state));
    EXPECT_EQ(job->name, "contract");
    EXPECT_EQ(own_jobs_like(spec()), 1U);
    ASSERT_TRUE(m_cluster.cancel(id));
    ASSERT_TRUE(ended(id));
    EXPECT_EQ(m_cluster.job(id)->state, JobState::cancelled);
}

TEST_P(ClusterContract, SaysMissingForAJobThatNeverWas)
{
    const auto job = m_cluster.job(JobId{4000000});
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().kind, Error::Kind::missing);
    EXPECT_EQ(m_cluster.has_first_step(JobId{4000000}).error().kind, Error::Kind::missing);
    EXPECT_TRUE(m_cluster.cancel(JobId{4000000}));
    EXPECT_TRUE(m_cluster.complete(JobId{4000000}, 0));
}

TEST_P(ClusterContract, AnotherStepSharesTheJob)
{
    const auto started = start(spec(), {"sh", "-c", "echo; exec sleep 60"});
    ASSERT_EQ(first_from(started.process.output, 1), "\n");
    const auto step = m_cluster.start_step(started.job, {"sh", "-c", "cat; echo bye >&2"}, true);
    ASSERT_TRUE(step);
    ASSERT_EQ(::write(step->input, "hello\n", 6), 6);
    ::close(step->input);
    EXPECT_EQ(all_from(step->output), "hello\n");
    EXPECT_EQ(all_from(step->error), "bye\n");
    EXPECT_EQ(m_cluster.job(started.job)->state, JobState::running);
    ::close(started.process.output);
    ::close(started.process.error);
}

TEST_P(ClusterContract, AnAbandonedStepGoesOn)
{
    const std::string mark = m_directory + "/mark";
    const std::string go = m_directory + "/go";
    const auto started = start(spec(), {"sh", "-c",
                                        "echo hello; while [ ! -e " + go +
                                            " ]; do sleep 0.01; done; "
                                            "seq 20000; touch " +
                                            mark + "; exec sleep 60"});
    ASSERT_EQ(first_from(started.process.output, 6), "hello\n");
    m_cluster.abandon(started.process);
    EXPECT_EQ(all_from(started.process.output), "");
    EXPECT_EQ(all_from(started.process.error), "");
    ASSERT_TRUE(std::filesystem::create_directory(go));
    EXPECT_TRUE(wait_for([&] { return std::filesystem::exists(mark); }));
    EXPECT_EQ(m_cluster.job(started.job)->state, JobState::running);
    m_cluster.abandon(started.process); // again: the step is gone
}

TEST_P(ClusterContract, TheControllerSaysWhatItIs)
{
    const auto controller = m_cluster.controller();
    ASSERT_TRUE(controller);
    EXPECT_THAT(controller->version, ::testing::MatchesRegex("[0-9][0-9][.][0-9][0-9].*"));
    EXPECT_THAT(controller->library, ::testing::MatchesRegex("[0-9][0-9][.][0-9][0-9].*"));
    EXPECT_GT(controller->kill_wait.count(), 0);
}

TEST_P(ClusterContract, AWaitingJobTakesAnotherTimeLimit)
{
    const auto started = start(spec(), {"sh", "-c", "echo; exec sleep 60"});
    ASSERT_EQ(first_from(started.process.output, 1), "\n");
    JobSpec later = spec();
    later.after_ok = started.job;
    const JobId id = submit(later, "#!/bin/sh\nexec sleep 60\n");
    EXPECT_EQ(m_cluster.job(id)->walltime, std::chrono::minutes(5));
    ASSERT_TRUE(m_cluster.set_walltime(id, std::chrono::minutes(7)));
    EXPECT_EQ(m_cluster.job(id)->walltime, std::chrono::minutes(7));
    EXPECT_EQ(m_cluster.job(started.job)->walltime, std::chrono::minutes(5));
    ::close(started.process.output);
    ::close(started.process.error);
}

TEST_P(ClusterContract, NoTimeLimitForAJobThatIsOverOrNeverWas)
{
    const JobId id = submit(spec(), "#!/bin/sh\nexec sleep 60\n");
    ASSERT_TRUE(m_cluster.cancel(id));
    ASSERT_TRUE(ended(id));
    EXPECT_EQ(m_cluster.set_walltime(id, std::chrono::minutes(7)).error().kind,
              Error::Kind::denied);
    EXPECT_EQ(m_cluster.set_walltime(JobId{4000000}, std::chrono::minutes(7)).error().kind,
              Error::Kind::missing);
}

} // namespace gpuq
