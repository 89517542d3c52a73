// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/use.h"

#include "ports/accounting.h"

#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

const TresNames k_names = {
    {1, "cpu"}, {1001, "gres/gpu"}, {1002, "gres/gpu:k80"}, {1003, "gres/gpumem"}};

TEST(Use, TakesTheGpusOutOfAnAllocation)
{
    JobUse use;
    add_gpus(use, "1=4,2=16384,1001=3,1002=2,1003=9,4=1", k_names);
    EXPECT_EQ(use.gpus, 3);
    EXPECT_EQ(use.models, (std::vector<std::pair<std::string, int>>{{"k80", 2}}));
    JobUse none;
    add_gpus(none, "1=4,,x=1,1001=", k_names);
    add_gpus(none, "", k_names);
    EXPECT_EQ(none, JobUse());
}

TEST(Use, TakesSharesOutOfAnAllocation)
{
    const TresNames names = {
        {1, "cpu"}, {1001, "gres/gpu"}, {1004, "gres/shard"}, {1005, "gres/mps"}};
    JobUse use;
    add_gpus(use, "1=4,1004=2", names);
    EXPECT_EQ(use.gpus, 0);
    EXPECT_EQ(use.share, (GpuShare{GpuShare::Kind::shard, 2, {}, {}, {}}));
    JobUse none;
    add_gpus(none, "1=4,1001=1,1004=0", names);
    EXPECT_EQ(none.share, std::nullopt);
    add_gpus(none, "1005=50", names);
    EXPECT_EQ(none.share, (GpuShare{GpuShare::Kind::mps, 50, {}, {}, {}}));
}

TEST(Use, TakesTheMemoryOutOfResources)
{
    const TresNames names = {{1, "cpu"}, {2, "mem"}, {7, "vmem"}};
    EXPECT_EQ(memory_in("1=4,2=16384,7=5", names), 16384U);
    EXPECT_EQ(memory_in("2=0", names), 0U);
    // Slurm's value for "none", and malformed numbers.
    for (const char* none : {"", "1=4", "2=18446744073709551614", "2=", "2=x", "2", "=5", ","}) {
        EXPECT_EQ(memory_in(none, names), std::nullopt) << none;
    }
}

TEST(Use, OfAnAccountIsThatOfTheLabAboveIt)
{
    const std::map<std::string, std::string> parents = {{"root", ""},          {"physics", "root"},
                                                        {"optics", "physics"}, {"laser", "optics"},
                                                        {"one", "two"},        {"two", "one"}};
    EXPECT_EQ(lab_of("laser", parents), "physics");
    EXPECT_EQ(lab_of("physics", parents), "physics");
    EXPECT_EQ(lab_of("root", parents), "root");
    EXPECT_EQ(lab_of("hidden", parents), "");
    EXPECT_EQ(lab_of("one", parents), "");
    EXPECT_EQ(lab_of("physics", {}), "");
}

} // namespace
} // namespace gpuq::slurm
