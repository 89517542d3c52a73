// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/meeting_port.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>

namespace gpuq::supervisor {
namespace {

/// Listens like a server of the program. Returns 0 or errno.
int listens_at(int port, bool reuses, Descriptor& server)
{
    server.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = reuses ? 1 : 0;
    ::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(port));
    const auto* address = reinterpret_cast<const sockaddr*>(&any);
    return ::bind(server.get(), address, sizeof any) == 0 && ::listen(server.get(), 1) == 0 ? 0
                                                                                            : errno;
}

TEST(MeetingPort, IsTheRunsAlone)
{
    const auto port = MeetingPort::hold();
    ASSERT_TRUE(port);
    Descriptor other;
    EXPECT_EQ(listens_at(port->number(), /*reuses=*/false, other), EADDRINUSE);
    std::set<int> ports{port->number()};
    std::vector<MeetingPort> all;
    for (int i = 0; i < 200; ++i) {
        auto another = MeetingPort::hold();
        ASSERT_TRUE(another);
        EXPECT_TRUE(ports.insert(another->number()).second);
        all.push_back(*std::move(another));
    }
}

TEST(MeetingPort, TakesAServerOfTheRunAgainAndAgain)
{
    const auto port = MeetingPort::hold();
    ASSERT_TRUE(port);
    for (int i = 0; i < 3; ++i) {
        Descriptor server;
        EXPECT_EQ(listens_at(port->number(), /*reuses=*/true, server), 0);
    }
}

} // namespace
} // namespace gpuq::supervisor
