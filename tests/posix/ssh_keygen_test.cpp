// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/ssh_keygen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

namespace gpuq {
namespace {

std::set<std::string> key_directories()
{
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
        if (entry.path().filename().string().starts_with("gpuq-key-")) {
            names.insert(entry.path());
        }
    }
    return names;
}

/// Whether a key directory remains for two seconds; those of tests running in parallel disappear.
bool is_one_left(const std::set<std::string>& before)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) {
        const auto now = key_directories();
        if (std::includes(before.begin(), before.end(), now.begin(), now.end())) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
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
    const auto before = key_directories();
    ::setenv("PATH", "/nonexistent", 1);
    const auto key = make_ssh_key();
    ::setenv("PATH", path.c_str(), 1);
    EXPECT_EQ(key.error().kind, Error::Kind::not_found);
    EXPECT_THAT(key.error().text, testing::HasSubstr("install OpenSSH's client"));
    EXPECT_FALSE(is_one_left(before));
}

} // namespace
} // namespace gpuq
