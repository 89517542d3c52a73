// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_messages.h"

#include "fakes/socket_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuq::remote {
namespace {

TEST(SshMessages, KeepTheEndOfAFloodAndShowItsBeginning)
{
    EventLoop loop;
    std::vector<std::string> shown;
    SshMessages messages(
        loop, [] { return true; }, [&](std::string_view line) { shown.emplace_back(line); });
    SocketPair pair = socket_pair(0);
    messages.begin(std::move(pair.one));
    const std::string piece(1000, 'x');
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(write_all(pair.other.get(), piece + "\n"));
        messages.read();
    }
    ASSERT_TRUE(write_all(pair.other.get(), "ada@login1: Permission denied (publickey).\n"));
    messages.read();
    EXPECT_THAT(messages.text(), testing::EndsWith("Permission denied (publickey).\n"));
    EXPECT_LT(messages.text().size(), 200'000U);
    EXPECT_EQ(shown.size(), 100U);
}

} // namespace
} // namespace gpuq::remote
