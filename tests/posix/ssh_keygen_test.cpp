// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/ssh_keygen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

namespace gpuq {
namespace {

std::set<std::string> key_folders()
{
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
        if (entry.path().filename().string().starts_with("gpuq-key-")) {
            names.insert(entry.path());
        }
    }
    return names;
}

TEST(SshKey, IsAPairWithoutAComment)
{
    if (std::system("command -v ssh-keygen >/dev/null") != 0) {
        GTEST_SKIP() << "no ssh-keygen here";
    }
    const auto one = make_ssh_key();
    const auto two = make_ssh_key();
    ASSERT_TRUE(one && two);
    EXPECT_THAT(one->secret, testing::StartsWith("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
    EXPECT_THAT(one->public_line, testing::MatchesRegex("ssh-ed25519 AAAA[A-Za-z0-9+/=]+"));
    EXPECT_NE(one->public_line, two->public_line);
}

TEST(SshKey, LeavesNothingBehindAndSaysWhatIsMissing)
{
    const std::string path = std::getenv("PATH");
    const auto before = key_folders();
    ::setenv("PATH", "/nonexistent", 1);
    const auto key = make_ssh_key();
    ::setenv("PATH", path.c_str(), 1);
    EXPECT_EQ(key.error().kind, Error::Kind::not_found);
    EXPECT_THAT(key.error().text, testing::HasSubstr("install OpenSSH's client"));
    EXPECT_EQ(key_folders(), before);
}

} // namespace
} // namespace gpuq
