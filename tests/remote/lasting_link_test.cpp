// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/lasting_link.h"

#include "fakes/socket_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <random>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gpuq::remote {
namespace {

const std::string k_session(32, 'a');

/// Two ends whose connections the test makes and cuts.
struct Ends {
    LastingLink client{k_session};
    LastingLink server{frames::Open{1, 1, k_session}};
    std::string at_client, at_server;

    /// False if the server rejects it.
    bool connect()
    {
        auto [here, there] = socket_pair(SOCK_NONBLOCK);
        Descriptor again = copy_of(here);
        client.connect(std::move(here), std::move(again));
        Descriptor out = copy_of(there);
        Channel connection(std::move(there), std::move(out));
        frames::Decoder decoder;
        decoder.feed(connection.read_some().value_or(""));
        const auto open = decoder.next();
        return open && *open &&
               server.connect(std::get<frames::Open>(**open), std::move(connection),
                              std::move(decoder));
    }

    void cut()
    {
        client.disconnect();
        server.disconnect();
    }

    static std::size_t write(LastingLink& link, std::string_view bytes)
    {
        const std::array<iovec, 1> part{{{const_cast<char*>(bytes.data()), bytes.size()}}};
        return static_cast<std::size_t>(std::max<ssize_t>(link.write(part), 0));
    }

    static void read(LastingLink& link, std::string& into)
    {
        std::array<char, 1000> buffer;
        ssize_t count = 0;
        while ((count = link.read(buffer)) > 0) {
            into.append(buffer.data(), static_cast<std::size_t>(count));
        }
    }

    void exchange()
    {
        for (LastingLink* const link : {&client, &server}) {
            (void)link->write({});
        }
        read(client, at_client);
        read(server, at_server);
    }
};

TEST(LastingLink, CarriesBytesInBothDirections)
{
    Ends ends;
    EXPECT_EQ(Ends::write(ends.client, "before"), 6U); // waits for a connection
    ASSERT_TRUE(ends.connect());
    Ends::write(ends.server, "answer");
    ends.exchange();
    ends.exchange();
    EXPECT_EQ(ends.at_server, "before");
    EXPECT_EQ(ends.at_client, "answer");
    EXPECT_TRUE(ends.client.has_answered());
}

TEST(LastingLink, ContinuesAtTheRightByteAfterEveryCut)
{
    std::mt19937 random(7);
    for (int round = 0; round < 5; ++round) {
        Ends ends;
        std::array<std::string, 2> sent;
        for (int step = 0; step < 200; ++step) {
            if (!ends.client.is_connected() || !ends.server.is_connected()) {
                ends.cut();
                ASSERT_TRUE(ends.connect());
            }
            for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
                std::string bytes(random() % 30'000, '\0');
                std::generate(bytes.begin(), bytes.end(),
                              [&] { return static_cast<char>(random()); });
                bytes.resize(Ends::write(side == 0 ? ends.client : ends.server, bytes));
                sent[side] += bytes;
            }
            switch (random() % 4) {
            case 0:
                ends.cut();
                break;
            case 1: // one side is faster
                Ends::read(ends.client, ends.at_client);
                break;
            default:
                ends.exchange();
            }
        }
        ends.cut();
        ASSERT_TRUE(ends.connect());
        for (int more = 0; more < 1000 && (ends.at_server.size() < sent[0].size() ||
                                           ends.at_client.size() < sent[1].size());
             ++more) {
            ends.exchange();
        }
        EXPECT_TRUE(ends.at_server == sent[0]) << round;
        EXPECT_TRUE(ends.at_client == sent[1]) << round;
    }
}

TEST(LastingLink, KeepsALimitedNumberOfBytes)
{
    Ends ends;
    const std::string much(LastingLink::k_room + 1000, 'm');
    EXPECT_EQ(Ends::write(ends.client, much), LastingLink::k_room);
    EXPECT_EQ(Ends::write(ends.client, "more"), 0U);
    ASSERT_TRUE(ends.connect());
    for (int turn = 0; turn < 1000 && ends.at_server.size() < LastingLink::k_room; ++turn) {
        ends.exchange();
    }
    EXPECT_EQ(ends.at_server.size(), LastingLink::k_room);
    EXPECT_EQ(Ends::write(ends.client, "more"), 4U);
}

TEST(LastingLink, IsLostIfTheOtherSideDoesNotKnowIt)
{
    LastingLink client(k_session);
    auto [here, there] = socket_pair(SOCK_NONBLOCK);
    Descriptor again = copy_of(here);
    client.connect(std::move(here), std::move(again));
    const std::string hello = frames::encode(frames::Hello{});
    ASSERT_EQ(::write(there.get(), hello.data(), hello.size()), static_cast<ssize_t>(hello.size()));
    std::array<char, 10> buffer;
    EXPECT_EQ(client.read(buffer), 0);
    EXPECT_TRUE(client.is_lost());
}

TEST(LastingLink, RejectsBytesThatDoNotFollow)
{
    Ends ends;
    ASSERT_TRUE(ends.connect());
    ends.exchange();
    auto [here, there] = socket_pair(SOCK_NONBLOCK);
    Descriptor again = copy_of(here);
    ends.client.connect(std::move(here), std::move(again));
    frames::Hello hello;
    hello.known = true;
    const std::string bytes =
        frames::encode(hello) + frames::encode(frames::Output{Stream::out, 5, std::string("gap")});
    ASSERT_EQ(::write(there.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    Ends::read(ends.client, ends.at_client);
    EXPECT_EQ(ends.at_client, "");
    EXPECT_TRUE(ends.client.is_lost());
}

TEST(LastingLink, AcceptsNoConnectionOlderThanThePresentOne)
{
    Ends ends;
    ASSERT_TRUE(ends.connect());
    ASSERT_TRUE(ends.connect());
    auto [here, there] = socket_pair(SOCK_NONBLOCK);
    Descriptor out = copy_of(there);
    frames::Open late;
    late.session = k_session;
    late.connection = 1;
    EXPECT_FALSE(ends.server.connect(late, Channel(std::move(there), std::move(out)), {}));
    Ends::write(ends.client, "still");
    ends.exchange();
    ends.exchange();
    EXPECT_EQ(ends.at_server, "still");
}

TEST(LastingLink, LeavesWhateverIsUnfinished)
{
    for (const bool is_cut : {false, true}) {
        Ends ends;
        ASSERT_TRUE(ends.connect());
        ends.exchange();
        if (is_cut) {
            ends.cut();
        }
        Ends::write(ends.client, std::string(LastingLink::k_room, 'x'));
        ends.client.leave();
        if (is_cut) { // the next connection tells the other side
            ASSERT_TRUE(ends.connect());
        }
        for (int i = 0; i < 1000 && !ends.server.is_lost(); ++i) {
            ends.exchange();
        }
        EXPECT_TRUE(ends.server.is_lost());
        EXPECT_FALSE(ends.server.is_connected());
        ends.exchange();
        EXPECT_TRUE(ends.client.is_lost()) << "the other side has confirmed it";
    }
}

TEST(LastingLink, IsNotPolledForOutputThatHasNoRoom)
{
    Ends ends;
    ASSERT_TRUE(ends.connect());
    ends.exchange();
    Ends::write(ends.server, std::string(LastingLink::k_room, 'x'));
    for (int i = 0; i < 1000 && ends.server.has_unsent(); ++i) {
        // The client receives, but the confirmations are not read.
        (void)ends.server.write({});
        Ends::read(ends.client, ends.at_client);
    }
    ASSERT_FALSE(ends.server.has_unsent());
    EXPECT_EQ(Ends::write(ends.server, "y"), 0U);
    EXPECT_EQ(ends.server.output(), -1);
    ends.exchange(); // the confirmations
    ends.exchange();
    EXPECT_NE(ends.server.output(), -1);
}

} // namespace
} // namespace gpuq::remote
