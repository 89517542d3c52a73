// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/channel.h"

#include <gtest/gtest.h>

#include <array>
#include <malloc.h>
#include <string>
#include <unistd.h>

namespace gpuq::remote {
namespace {

/// Writes everything pending and returns the bytes received at the other end.
std::string drained(Channel& channel, int end)
{
    std::string all;
    std::array<char, 65536> buffer;
    while (channel.write_some()) {
        const ssize_t count = ::read(end, buffer.data(), buffer.size());
        if (count <= 0) {
            break;
        }
        all.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return all;
}

TEST(Channel, SendsInItsOrderWhatItBorrowsAndWhatComesBehindIt)
{
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const Descriptor end(pipe[0]);
    set_nonblocking(end.get());
    Channel channel(Descriptor(::dup(pipe[0])), Descriptor(pipe[1]));
    std::string lent(200'000, 'l'); // more than the capacity of a pipe
    channel.send_bytes("header", lent);
    EXPECT_GT(channel.borrowed(), 0U);
    EXPECT_EQ(channel.waiting(), channel.borrowed());
    channel.send(frames::Beat{7});
    EXPECT_EQ(channel.borrowed(), 0U);
    channel.send_bytes("second", "bytes");
    EXPECT_EQ(channel.borrowed(), 0U);
    const std::string expected =
        "header" + lent + frames::encode(frames::Beat{7}) + "second" + "bytes";
    lent.assign(lent.size(), '?'); // the caller may reuse the buffer
    EXPECT_TRUE(drained(channel, end.get()) == expected);
    EXPECT_EQ(channel.waiting(), 0U);
}

TEST(Channel, WhatItBorrowsIsSentFromWhereItLies)
{
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const Descriptor end(pipe[0]);
    set_nonblocking(end.get());
    Channel channel(Descriptor(::dup(pipe[0])), Descriptor(pipe[1]));
    const std::string lent(200'000, 'l');
    channel.send_bytes("header", lent);
    EXPECT_TRUE(drained(channel, end.get()) == "header" + lent);
    EXPECT_EQ(channel.borrowed(), 0U);
}

TEST(Channel, WhatIsSentIsNotKeptThoughMoreAlwaysWaits)
{
    Pipe to = *make_pipe();
    Pipe from = *make_pipe();
    Channel channel(std::move(from.read), std::move(to.write));
    set_nonblocking(to.read.get());
    const std::string piece(wire::k_piece, 'x');
    std::vector<char> buffer(wire::k_piece);
    const auto held = [] {
        const struct mallinfo2 facts = ::mallinfo2();
        return facts.uordblks + facts.hblkhd;
    };
    const std::size_t before = held();
    for (int i = 0; i < 2000; ++i) {
        while (!channel.is_full()) {
            channel.send(frames::StreamBytes{1, piece});
        }
        ASSERT_TRUE(channel.write_some());
        ASSERT_GT(::read(to.read.get(), buffer.data(), buffer.size()), 0);
        ASSERT_GT(channel.waiting(), 0U);
    }
    EXPECT_LT(held(), before + (8U << 20));
}

} // namespace
} // namespace gpuq::remote
