// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/cluster.h"
#include "embedded/directory.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace gpuq::embedded {
namespace {

TEST(Status, OfADirectoryThatOthersMayWriteIsRefused)
{
    std::string dir = testing::TempDir() + "gpuq-status-XXXXXX";
    ASSERT_NE(mkdtemp(dir.data()), nullptr);
    EXPECT_EQ(status(dir).error().kind, Error::Kind::missing) << "no cluster";
    State state;
    state.spec.name = "local";
    ASSERT_TRUE(write_state(Places{dir, {}}, state));
    EXPECT_TRUE(status(dir));
    std::filesystem::permissions(dir, std::filesystem::perms::all);
    const auto refused = status(dir); // Slurm's commands would load plugins that slurm.conf names
    EXPECT_EQ(refused.error().kind, Error::Kind::denied);
    EXPECT_THAT(refused.error().text, testing::HasSubstr("chmod go-w " + dir));
    std::filesystem::remove_all(dir);
}

} // namespace
} // namespace gpuq::embedded
