// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/network_socket.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuq {
namespace {

TEST(NetworkSocket, ConnectsToAFreePort)
{
    const auto listener = listen_on_network("127.0.0.1", 4);
    ASSERT_TRUE(listener) << listener.error().text;
    const std::string address = address_of_listener(listener->get());
    EXPECT_TRUE(address.starts_with("127.0.0.1:")) << address;
    const auto client = begin_to_connect(address);
    ASSERT_TRUE(client) << client.error().text;
    pollfd waits[] = {{listener->get(), POLLIN, 0}, {client->get(), POLLOUT, 0}};
    EXPECT_EQ(::poll(waits, 1, 10000), 1);
    const Descriptor server(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(server);
    EXPECT_EQ(::poll(waits + 1, 1, 10000), 1);
    EXPECT_EQ(::write(client->get(), "hi", 2), 2);
    char bytes[3] = {};
    EXPECT_EQ(::read(server.get(), bytes, sizeof bytes), 2);
    EXPECT_STREQ(bytes, "hi");
}

TEST(NetworkSocket, ReportsThatNobodyListens)
{
    std::string address;
    {
        const auto listener = listen_on_network("127.0.0.1", 4);
        address = address_of_listener(listener->get());
    }
    const auto client = begin_to_connect(address);
    if (client) {
        pollfd wait{client->get(), POLLIN, 0};
        EXPECT_EQ(::poll(&wait, 1, 10000), 1);
        char byte = 0;
        EXPECT_LT(::read(client->get(), &byte, 1), 0);
    }
}

TEST(NetworkSocket, UsesTheAddressThatLeadsToTheOtherHost)
{
    EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
    EXPECT_EQ(address_towards("login1"), "") << "no name server is asked";
    EXPECT_EQ(address_towards(""), "");
}

TEST(NetworkSocket, RefusesMalformedAddresses)
{
    for (const char* text :
         {"", ":", "login1:22", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
          "127.0.0.1:22 ", "[::1", "::1]:22", "127.0.0.1:-1"}) {
        const auto socket = begin_to_connect(text);
        ASSERT_FALSE(socket) << text;
        EXPECT_EQ(socket.error().kind, Error::Kind::usage) << text;
    }
    EXPECT_EQ(listen_on_network("localhost", 4).error().kind, Error::Kind::usage);
    EXPECT_TRUE(begin_to_connect("[::1]:9") ||
                begin_to_connect("[::1]:9").error().kind == Error::Kind::io);
    EXPECT_EQ(address_of_listener(-1), "");
}

} // namespace
} // namespace gpuq
