// SPDX-License-Identifier: GPL-2.0-or-later
#include "log/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpuq::log {
namespace {

TEST(Audit, ALineHasTimeUserAndOneLineOfText)
{
    std::string dir = (std::filesystem::temp_directory_path() / "gpuq-audit-XXXXXX").string();
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    const std::string path = dir + "/audit.log";
    ASSERT_TRUE(audit(path, "modify qos short"));
    ASSERT_TRUE(audit(path, "failed: a\nforged\x1b[2J password=hunter22"));
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_THAT(text.str(), testing::MatchesRegex(
                                "[0-9-]+T[0-9:.]+Z [^:]+: modify qos short\n[0-9-]+T[0-9:.]+Z "
                                "[^:]+: failed: a\\^Jforged\\^\\[\\[2J password=.removed.\n"));
    EXPECT_FALSE(audit(dir + "/missing/audit.log", "x"));
    std::filesystem::remove_all(dir);
}

} // namespace
} // namespace gpuq::log
