// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/layout.h"

#include <gtest/gtest.h>
#include <sys/un.h>

#include <limits>

namespace gpuq {
namespace {

const RunKey k_key = *RunKey::parse("20261120T131158.042Z-0f3a9c1e5b7d2468");

TEST(Layout, NamesTheFilesOfARun)
{
    const std::string run = "runs/20261120T131158.042Z-0f3a9c1e5b7d2468";
    EXPECT_EQ(layout::run_dir(k_key), run);
    EXPECT_EQ(layout::run_json(k_key), run + "/run.json");
    EXPECT_EQ(layout::inbox(k_key), run + "/inbox");
    EXPECT_EQ(layout::ended_json(k_key), run + "/ended.json");
    EXPECT_EQ(layout::shown_json(k_key), run + "/shown.json");
    EXPECT_EQ(layout::log(k_key, {1}, Stream::out), run + "/link-1/out.log");
    EXPECT_EQ(layout::log(k_key, {2}, Stream::err), run + "/link-2/err.log");
    EXPECT_EQ(layout::order(k_key, {1}), run + "/link-1/order");
    EXPECT_EQ(layout::times(k_key, {1}), run + "/link-1/times");
    EXPECT_EQ(layout::journal(k_key, {1}), run + "/link-1/journal.jsonl");
    EXPECT_EQ(layout::job_json(k_key, {1}), run + "/link-1/job.json");
    EXPECT_EQ(layout::claim(k_key, {1}), run + "/link-1/claim");
    EXPECT_EQ(layout::active(k_key), "index/active/20261120T131158.042Z-0f3a9c1e5b7d2468");
}

TEST(Layout, MakesAFileNameOfAnyCluster)
{
    EXPECT_EQ(layout::job_index("lab-1_x", {42}), "index/jobs/lab-1_x/42");
    EXPECT_EQ(layout::job_index("../..", {1}), "index/jobs/%2e%2e%2f%2e%2e/1");
    EXPECT_EQ(layout::job_index("", {1}), "index/jobs/%/1");
    EXPECT_NE(layout::job_index("%2e", {1}), layout::job_index(".", {1}));
}

TEST(Layout, KeepsSocketsShortEnough)
{
    const std::string name = layout::socket(std::numeric_limits<unsigned>::max(), k_key, {99});
    EXPECT_LT(name.size() + 1, sizeof(sockaddr_un::sun_path));
    EXPECT_NE(name, layout::socket(0, k_key, {99}));
    EXPECT_NE(name, layout::socket(std::numeric_limits<unsigned>::max(), k_key, {98}));
}

} // namespace
} // namespace gpuq
