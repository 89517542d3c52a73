// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/plain_jobs.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "fakes/now.h"
#include "ports/job.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

Job job(std::uint32_t id, JobState state = JobState::running, const std::string& called = "")
{
    Job made;
    made.id = JobId{id};
    made.name = "train";
    made.state = state;
    made.partition = "gpu";
    made.called = called;
    made.submitted_at = k_now - 1h + std::chrono::seconds(id);
    return made;
}

RunKey some_key(unsigned char number)
{
    return RunKey::make(k_now, {1, 2, 3, 4, 5, 6, 7, number});
}

TEST(PlainJobs, AreThoseWhoseCommentNamesNoRunOnDisk)
{
    fakes::MemoryStore store;
    ASSERT_TRUE(store.write(layout::run_json(some_key(1)), "{}"));
    Job ours = job(1);
    ours.comment = job_comment(some_key(1));
    Job link = job(2);
    link.comment = job_comment(some_key(1), LinkNumber{2}) + " used: 3";
    Job forged = job(3);
    forged.comment = job_comment(some_key(2));
    Job path = job(4);
    path.comment = "gpuq:../../etc/passwd";
    std::vector<OwnJob> jobs;
    for (const Job& one : {ours, link, forged, path, job(5)}) {
        jobs.push_back({one, {}, {}});
    }
    std::vector<std::uint32_t> plain;
    for (const RunStatus& one : plain_statuses(store, jobs, "lab", k_now)) {
        plain.push_back(one.job->job.value);
    }
    EXPECT_EQ(plain, (std::vector<std::uint32_t>{5, 4, 3})); // newest first
}

TEST(PlainJobs, AreListedForADayAfterTheirEnd)
{
    fakes::MemoryStore store;
    Job ended = job(1, JobState::completed);
    ended.ends_at = k_now - 23h;
    EXPECT_EQ(plain_statuses(store, {{ended, {}, {}}}, "lab", k_now).size(), 1U);
    ended.ends_at = k_now - 25h;
    EXPECT_TRUE(plain_statuses(store, {{ended, {}, {}}}, "lab", k_now).empty());
}

TEST(PlainJobs, AreNotThoseOfRefusedRuns)
{
    fakes::MemoryStore store;
    Job withdrawn = job(1, JobState::cancelled);
    withdrawn.comment = job_comment(RunKey::make(k_now, {1, 2, 3, 4, 5, 6, 7, 8}));
    withdrawn.nodes.clear();
    EXPECT_TRUE(plain_statuses(store, {{withdrawn, {}, {}}}, "lab", k_now).empty());
    withdrawn.nodes = "n1";
    EXPECT_EQ(plain_statuses(store, {{withdrawn, {}, {}}}, "lab", k_now).size(), 1U);
}

TEST(PlainJobs, EndAsSlurmHasIt)
{
    const auto ending = [](JobState state, std::optional<int> status) {
        Job ended = job(1, state);
        ended.exit_status = status;
        ended.ends_at = k_now - 1min;
        const RunStatus shown = plain_status({ended, {}, {}}, "lab", k_now);
        EXPECT_EQ(shown.state, RunState::ended);
        return std::pair(shown.ending->status, shown.ending->cause);
    };
    EXPECT_EQ(ending(JobState::completed, 0), std::pair(0, Cause::finished));
    EXPECT_EQ(ending(JobState::failed, 3), std::pair(3, Cause::finished));
    EXPECT_EQ(ending(JobState::failed, 139), std::pair(139, Cause::crashed));
    EXPECT_EQ(ending(JobState::failed, 128 + 53), std::pair(125, Cause::not_started));
    EXPECT_EQ(ending(JobState::cancelled, 0), std::pair(123, Cause::cancelled));
    EXPECT_EQ(ending(JobState::timeout, 0), std::pair(124, Cause::time_limit));
    EXPECT_EQ(ending(JobState::out_of_memory, {}), std::pair(137, Cause::memory));
    EXPECT_EQ(ending(JobState::node_fail, {}), std::pair(119, Cause::node_failed));
}

TEST(PlainJobs, HaveTheGpusOfAllTheirNodes)
{
    Job two = job(1);
    two.size.nodes = 2;
    two.size.gpus = {{"k80", 8}};
    const Request request = plain_status({two, {}, {}}, "lab", k_now).run->request;
    EXPECT_EQ(request.nodes * request.gpus.count, 8);
    EXPECT_EQ(request.gpus.model, "k80");
    two.size.gpus = {{"", 3}}; // --gpus=3 on two nodes
    const Request uneven = plain_status({two, {}, {}}, "lab", k_now).run->request;
    EXPECT_EQ(uneven.nodes * uneven.gpus.count, 3);
}

TEST(PlainJobs, AreNamedAsSlurmsCommandsNameThem)
{
    for (const char* word : {"20", "20_3", "20_[1-4,7%2]", "20+1", "4294967295"}) {
        EXPECT_TRUE(spells_a_job(word)) << word;
    }
    for (const char* word : {"", "0", "train", "20_", "20_x", "20_[;]", "20+", "-1", "20.batch",
                             "4294967296", "last", "20 ", "20_[]"}) {
        EXPECT_FALSE(spells_a_job(word)) << word;
    }
}

TEST(PlainJobs, OfAnArrayAreFoundByItAndByTheirTask)
{
    const Job task = job(23, JobState::running, "20_3");
    EXPECT_TRUE(is_called(task, "20"));
    EXPECT_TRUE(is_called(task, "20_3"));
    EXPECT_TRUE(is_called(task, "23"));
    EXPECT_TRUE(is_called(task, "20_[1-4]"));
    EXPECT_FALSE(is_called(task, "20_4"));
    EXPECT_FALSE(is_called(task, "2"));
    const Job rest = job(20, JobState::pending, "20_[4-9,12-20:4%2]");
    EXPECT_TRUE(is_called(rest, "20"));
    EXPECT_TRUE(is_called(rest, "20_4"));
    EXPECT_TRUE(is_called(rest, "20_16"));
    EXPECT_FALSE(is_called(rest, "20_3"));
    EXPECT_FALSE(is_called(rest, "20_17"));
    EXPECT_TRUE(is_called(job(20, JobState::pending, "20_[1,3,5,...]"), "20_77"));
    EXPECT_TRUE(is_called(job(21, JobState::running, "20+1"), "20+1"));
    EXPECT_TRUE(is_called(job(21, JobState::running, "20+1"), "20"));
    EXPECT_FALSE(is_called(job(7), "20"));
}

} // namespace
} // namespace gpuq
