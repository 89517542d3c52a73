// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/forward.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

namespace gpuq::remote {
namespace {

TEST(Forward, IsReadAsPeopleWriteIt)
{
    EXPECT_EQ(*forward_from("6006"), (Forward{6006, "localhost:6006"}));
    EXPECT_EQ(*forward_from("8080:80"), (Forward{8080, "localhost:80"}));
    EXPECT_EQ(*forward_from("8080:node-2.x:80"), (Forward{8080, "node-2.x:80"}));
    for (const char* const wrong :
         {"", "0", "65536", "x", "-1", "80:", ":80", "80:80:80:80", "1:-o:2", "1:a b:2", "1::2",
          "1:a:", "1:a/b:2", "99999999999999999999"}) {
        const auto none = forward_from(wrong);
        ASSERT_FALSE(none) << wrong;
        EXPECT_EQ(none.error().kind, Error::Kind::usage) << wrong;
    }
}

TEST(Forward, ListensOnThisMachineAloneAndSaysWhatIsTaken)
{
    const Descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(other.get(), generic, size), 0);
    ASSERT_EQ(::listen(other.get(), 1), 0);
    ASSERT_EQ(::getsockname(other.get(), generic, &size), 0);
    const std::uint16_t port = ntohs(address.sin_port);
    const auto taken = listen_here(port);
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().text.find("is in use"), std::string::npos);
    EXPECT_EQ(::accept(other.get(), nullptr, nullptr), -1) << "it would report a visitor";
}

} // namespace
} // namespace gpuq::remote
