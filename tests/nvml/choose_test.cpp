// SPDX-License-Identifier: GPL-2.0-or-later
#include "nvml/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace gpuq::nvml {
namespace {

using Chosen = std::vector<std::optional<std::string>>;

/// `minors[i]` is the minor number of the device file of the i-th GPU in bus order.
std::vector<VisibleGpu> gpus(const std::vector<unsigned>& minors)
{
    std::vector<VisibleGpu> all;
    for (std::size_t i = 0; i < minors.size(); ++i) {
        all.push_back({"GPU-" + std::to_string(i), "0000000" + std::to_string(i), minors[i], {}});
    }
    return all;
}

TEST(Choose, TakesWhatIsNamed)
{
    EXPECT_EQ(choose({2, "GPU-2,GPU-0", "5,6"}, gpus({0, 1, 2})), (Chosen{"GPU-2", "GPU-0"}));
    EXPECT_EQ(choose({1, "GPU-7", ""}, gpus({0, 1, 2})), Chosen{std::nullopt});
}

TEST(Choose, ABeginningOfANameMustBeOneOnly)
{
    auto two = gpus({0, 1});
    two[0].uuid = "GPU-abc-1";
    two[1].uuid = "GPU-abd-2";
    EXPECT_EQ(choose({1, "GPU-abd", ""}, two), Chosen{"GPU-abd-2"});
    EXPECT_EQ(choose({1, "GPU-ab", ""}, two), Chosen{std::nullopt});
}

TEST(Choose, FindsPartsOfGpus)
{
    auto one = gpus({0});
    one[0].migs = {"MIG-a", "MIG-b"};
    EXPECT_EQ(choose({1, "MIG-b", "0"}, one), Chosen{"MIG-b"});
}

TEST(Choose, AJobThatSeesOnlyItsOwnHasThemAll)
{
    EXPECT_EQ(choose({2, "0,1", "2,3"}, gpus({2, 3})), (Chosen{"GPU-0", "GPU-1"}));
    EXPECT_EQ(choose({2, "0,1", ""}, gpus({0, 1})), (Chosen{"GPU-0", "GPU-1"}));
}

TEST(Choose, AConfinedJobHasThemHoweverTheNodeNumbersThem)
{
    // Slurm counts in bus order; the device files of this node are numbered differently.
    EXPECT_EQ(choose({2, "0,1", "4,5"}, gpus({7, 1})), (Chosen{"GPU-0", "GPU-1"}));
    EXPECT_EQ(choose({2, "1,0", "0,1"}, gpus({3, 2})), (Chosen{"GPU-0", "GPU-1"}));
}

TEST(Choose, AsManyAsTheJobHasMayStillBeOthers)
{
    // A node of four GPUs that lost two, and a job that had these two.
    EXPECT_EQ(choose({2, "2,3", "2,3"}, gpus({0, 1})), (Chosen{std::nullopt, std::nullopt}));
    EXPECT_EQ(choose({2, "", "0,1"}, gpus({1, 3})), (Chosen{std::nullopt, std::nullopt}));
}

TEST(Choose, WithoutNumbersOrNamesNothingIsSure)
{
    EXPECT_EQ(choose({1, "", ""}, gpus({0, 1})), Chosen{std::nullopt});
    EXPECT_EQ(choose({1, "0", ""}, gpus({0, 1})), Chosen{std::nullopt});
    EXPECT_EQ(choose({1, "0", "0x0"}, gpus({0, 1})), Chosen{std::nullopt});
    EXPECT_EQ(choose({2, "0", "0,0"}, gpus({0, 1, 2})), (Chosen{std::nullopt, std::nullopt}));
    EXPECT_EQ(choose({2, "0,,1", "0,,1"}, gpus({0, 1, 2})), (Chosen{std::nullopt, std::nullopt}));
    EXPECT_EQ(choose({2, "0,1,", "0,1,"}, gpus({0, 1})), (Chosen{"GPU-0", "GPU-1"}));
}

TEST(Choose, NeverAnotherJobsGpuHoweverTheNodeNumbersThem)
{
    // For either meaning of the IDs (device files or bus order), no other job's GPU is chosen.
    std::mt19937 random(6);
    std::vector<unsigned> minors = {0, 1, 2, 3, 4, 5, 6, 7};
    int chosen_once = 0;
    for (int round = 0; round < 2000; ++round) {
        if (round > 0) {
            std::shuffle(minors.begin(), minors.end(), random);
        }
        const std::size_t count = 1 + random() % 8;
        std::vector<unsigned> ids = {0, 1, 2, 3, 4, 5, 6, 7};
        std::shuffle(ids.begin(), ids.end(), random);
        ids.resize(count);
        std::string text;
        std::set<std::string> by_minor, by_place;
        for (const unsigned id : ids) {
            text += (text.empty() ? "" : ",") + std::to_string(id);
            by_place.insert("GPU-" + std::to_string(id));
            const auto at = std::find(minors.begin(), minors.end(), id) - minors.begin();
            by_minor.insert("GPU-" + std::to_string(at));
        }
        for (const auto& uuid : choose({count, text, text}, gpus(minors))) {
            chosen_once += uuid.has_value();
            ASSERT_TRUE(!uuid || (by_minor.count(*uuid) > 0 && by_place.count(*uuid) > 0));
        }
    }
    EXPECT_GT(chosen_once, 100);
}

} // namespace
} // namespace gpuq::nvml
