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

TEST(Audit, NoLineIsEverLost)
{
    std::string dir = (std::filesystem::temp_directory_path() / "gpuq-audit-XXXXXX").string();
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    const std::string path = dir + "/audit.log";
    const auto fill = [&] {
        std::ofstream(path, std::ios::app) << std::string(1 << 20, '.') << '\n';
    };
    const auto first_of = [](const std::string& file) {
        std::ifstream text(file);
        std::string line;
        std::getline(text, line);
        return line.substr(line.rfind(' ') + 1);
    };
    for (const char* const action : {"first", "second", "third", "last"}) {
        ASSERT_TRUE(audit(path, action));
        fill();
    }
    EXPECT_EQ(first_of(path + ".1"), "first");
    EXPECT_EQ(first_of(path + ".2"), "second");
    EXPECT_EQ(first_of(path + ".3"), "third");
    EXPECT_EQ(first_of(path), "last");
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
    std::filesystem::remove_all(dir);
}

} // namespace
} // namespace gpuq::log
