// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/streams.h"

#include "fakes/socket_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <random>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace gpuq::remote {
namespace {

/// One end of a connection between two gpuq processes.
struct End {
    explicit End(Descriptor socket)
        : copy(::dup(socket.get()))
        , channel(std::move(socket), std::move(copy))
        , streams(loop, [this] { return &channel; })
    {
    }

    void turn()
    {
        loop.run_once(EventLoop::Span{});
        (void)channel.write_some();
        decoder.feed(channel.read_some().value_or(""));
        for (auto frame = decoder.next(); frame && *frame; frame = decoder.next()) {
            came_right = !streams.on_frame(**frame) && came_right;
        }
    }

    Descriptor copy;
    Channel channel;
    EventLoop loop;
    Streams streams;
    frames::Decoder decoder;
    bool came_right = true;
};

class StreamsTest : public testing::Test {
protected:
    StreamsTest()
    {
        std::signal(SIGPIPE, SIG_IGN); // as in main
        SocketPair line = socket_pair(SOCK_NONBLOCK);
        client.emplace(std::move(line.one));
        server.emplace(std::move(line.other));
    }

    /// A stream between two sockets: one of the browser, one of the destination.
    SocketPair stream(std::uint32_t id)
    {
        SocketPair browser = socket_pair(SOCK_NONBLOCK), program = socket_pair(SOCK_NONBLOCK);
        client->streams.begin(id);
        client->streams.give(id, std::move(browser.other));
        server->streams.begin(id);
        server->streams.give(id, std::move(program.other));
        return {std::move(browser.one), std::move(program.one)};
    }

    void turn(int times = 1)
    {
        for (int i = 0; i < times; ++i) {
            client->turn();
            server->turn();
        }
    }

    std::optional<End> client, server;
};

std::string read_all(const Descriptor& from)
{
    std::string got;
    std::array<char, 65536> buffer;
    ssize_t count = 0;
    while ((count = ::read(from.get(), buffer.data(), buffer.size())) > 0) {
        got.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return got;
}

TEST_F(StreamsTest, CarryManyConnectionsAtOnceBothWaysToTheirEnds)
{
    std::mt19937 random(5);
    std::string bytes(3 << 20, 'x');
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
    std::vector<SocketPair> pairs;
    std::array<std::string, 3> there, back;
    std::array<std::size_t, 3> sent{};
    for (std::uint32_t id = 0; id < 3; ++id) {
        pairs.push_back(stream(id));
        ASSERT_EQ(::write(pairs[id].one.get(), "GET", 3), 3);
        ::shutdown(pairs[id].one.get(), SHUT_WR);
    }
    for (int turns = 0; turns < 5000 && back[2].size() < bytes.size(); ++turns) {
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            there[i] += read_all(pairs[i].other);
            const ssize_t count =
                ::write(pairs[i].other.get(), bytes.data() + sent[i], bytes.size() - sent[i]);
            sent[i] += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
            if (sent[i] == bytes.size()) {
                ::shutdown(pairs[i].other.get(), SHUT_WR);
            }
        }
        turn();
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            back[i] += read_all(pairs[i].one);
        }
    }
    turn(10);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        back[i] += read_all(pairs[i].one);
        EXPECT_EQ(there[i], "GET");
        EXPECT_TRUE(back[i] == bytes) << back[i].size();
    }
    EXPECT_EQ(client->streams.size() + server->streams.size(), 0U);
    EXPECT_TRUE(client->came_right && server->came_right);
}

TEST_F(StreamsTest, AReaderThatDoesNotReadHoldsUpNobodyElse)
{
    SocketPair slow = stream(1), quick = stream(2);
    const std::string much(8192, 'y');
    for (int i = 0; i < 2000; ++i) {
        (void)!::write(slow.other.get(), much.data(), much.size());
        turn();
    }
    ASSERT_EQ(::write(quick.other.get(), "hello", 5), 5);
    turn(3);
    EXPECT_EQ(read_all(quick.one), "hello");
    EXPECT_TRUE(client->came_right);
}

TEST_F(StreamsTest, MoreThanThereIsRoomForIsRefused)
{
    const SocketPair pair = stream(1);
    server->streams.begin(2); // no socket yet
    const std::string most(frames::k_stream_room, 'x');
    EXPECT_EQ(server->streams.on_frame(frames::StreamBytes{2, most}), std::nullopt);
    EXPECT_EQ(server->streams.on_frame(frames::StreamBytes{2, "x"}), 2U);
    EXPECT_EQ(server->streams.on_frame(frames::StreamEnd{1}), std::nullopt);
    EXPECT_EQ(server->streams.on_frame(frames::StreamBytes{1, "x"}), 1U);
    EXPECT_EQ(server->streams.on_frame(frames::StreamBytes{3, "of one that is gone"}),
              std::nullopt);
}

TEST_F(StreamsTest, WhatIsGoneThereIsGoneHere)
{
    const SocketPair pair = stream(1);
    ASSERT_EQ(::write(pair.other.get(), "half", 4), 4);
    turn(3);
    EXPECT_EQ(read_all(pair.one), "half");
    server->streams.refuse(1, "");
    turn(2);
    EXPECT_EQ(client->streams.size(), 0U);
}

} // namespace
} // namespace gpuq::remote
