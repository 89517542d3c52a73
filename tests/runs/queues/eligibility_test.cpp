// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/eligibility.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

PendingTasks tasks(const char* called)
{
    Job job;
    job.called = called;
    return pending_tasks(job);
}

TEST(PendingTasks, AreCountedAsSlurmListsThem)
{
    EXPECT_EQ(tasks(""), (PendingTasks{1, {}, true}));
    EXPECT_EQ(tasks("20_3"), (PendingTasks{1, {}, true}));
    EXPECT_EQ(tasks("20+1"), (PendingTasks{1, {}, true}));
    EXPECT_EQ(tasks("20_[7]"), (PendingTasks{1, {}, true}));
    EXPECT_EQ(tasks("20_[0-9,12,15-30:5]"), (PendingTasks{15, {}, true}));
    EXPECT_EQ(tasks("20_[0-9%2]"), (PendingTasks{10, 2, true}));
}

TEST(PendingTasks, AreIncompleteIfTheListIs)
{
    EXPECT_EQ(tasks("20_[1,3,...]"), (PendingTasks{2, {}, false}));
    EXPECT_EQ(tasks("20_[x]"), (PendingTasks{1, {}, false}));
    EXPECT_EQ(tasks("20_[9-1]"), (PendingTasks{1, {}, false}));
    EXPECT_EQ(tasks("20_[0-99999999999]"), (PendingTasks{1, {}, false}));
    EXPECT_EQ(tasks("20_[0-9:0%0]"), (PendingTasks{1, {}, false}));
}

} // namespace
} // namespace gpuq
