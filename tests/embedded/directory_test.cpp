// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/directory.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

TEST(Directory, OfRootIsReadableForAllWhateverTheUmaskIs)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "the cluster of another user is private";
    }
    std::string top = testing::TempDir() + "gpuq-directory-XXXXXX";
    ASSERT_NE(mkdtemp(top.data()), nullptr);
    const mode_t before = umask(077);
    const auto made = open_dir(top + "/lib/gpuq/cluster");
    const mode_t kept = umask(before);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ(kept, 077U);
    for (const char* part : {"/lib", "/lib/gpuq", "/lib/gpuq/cluster"}) {
        struct stat facts {};
        ASSERT_EQ(stat((top + part).c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777U, 0755U) << part;
    }
    std::filesystem::remove_all(top);
}

} // namespace
} // namespace gpuq::embedded
