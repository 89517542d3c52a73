// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/member.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq::supervisor {
namespace {

using Strings = std::vector<std::string>;

Strings described(Strings variables, const MemberPlan& plan)
{
    Environment environment(std::move(variables));
    describe_rank(environment, plan);
    Strings texts = environment.texts();
    std::erase_if(texts, [](const std::string& text) { return text.starts_with("SLURM_"); });
    std::sort(texts.begin(), texts.end());
    return texts;
}

const Strings k_task{"SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NTASKS=4", "SLURM_NODEID=1",
                     "CUDA_VISIBLE_DEVICES=0,1,2,3"};

TEST(Member, IsTheRankThatItsTaskIs)
{
    MemberPlan plan;
    plan.tasks = 2;
    EXPECT_EQ(described(k_task, plan),
              (Strings{"CUDA_VISIBLE_DEVICES=0,1,2,3", "GROUP_RANK=1", "LOCAL_RANK=1",
                       "LOCAL_WORLD_SIZE=2", "NODE_RANK=1", "RANK=3", "WORLD_SIZE=4"}));
}

TEST(Member, SeesTheGpusThatAreItsOwn)
{
    MemberPlan plan;
    plan.tasks = 2;
    plan.gpus_per_task = 2;
    EXPECT_EQ(described(k_task, plan).front(), "CUDA_VISIBLE_DEVICES=2,3");
    Strings more = k_task;
    more.back() = "ROCR_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c";
    EXPECT_EQ(described(more, plan).back(), "WORLD_SIZE=4");
    EXPECT_EQ(described(more, plan)[5], "ROCR_VISIBLE_DEVICES=GPU-c");
}

TEST(Member, LeavesWhatTheUserHasSet)
{
    Strings variables = k_task;
    variables.emplace_back("RANK=9");
    EXPECT_EQ(described(variables, MemberPlan{})[6], "RANK=9");
}

TEST(Member, AloneOnItsNodeTellsALauncherWhichNodeThatIs)
{
    const Strings arguments = described(k_task, MemberPlan{});
    EXPECT_NE(std::find(arguments.begin(), arguments.end(), "PET_NODE_RANK=1"), arguments.end());
}

} // namespace
} // namespace gpuq::supervisor
