// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/backlog.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace gpuq::remote {
namespace {

/// Bytes whose values depend on their offset.
std::string bytes_at(std::uint64_t offset, std::size_t count)
{
    std::string bytes(count, '\0');
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<char>((offset + i) * 31 >> 3);
    }
    return bytes;
}

TEST(Backlog, GivesEachByteOfItsOffsetHoweverItIsFilledAndEmptied)
{
    std::mt19937 random(5);
    const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
    Backlog backlog;
    for (int i = 0; i < 20'000; ++i) {
        switch (random() % 5) {
        case 0:
            backlog.add(bytes_at(backlog.end(), up_to(300'000)));
            break;
        case 1: {
            const auto room = backlog.room();
            ASSERT_FALSE(room.empty());
            const std::size_t count = up_to(room.size());
            bytes_at(backlog.end(), count).copy(room.data(), count);
            backlog.grew(count);
            break;
        }
        case 2: {
            const std::uint64_t offset = backlog.sent();
            const auto bytes = backlog.send(up_to(100'000) + 1);
            ASSERT_EQ(bytes.empty(), offset == backlog.end());
            ASSERT_TRUE(bytes == bytes_at(offset, bytes.size())) << offset;
            ASSERT_EQ(backlog.sent(), offset + bytes.size());
            break;
        }
        case 3:
            ASSERT_TRUE(backlog.confirm(backlog.begin() + up_to(backlog.sent() - backlog.begin())));
            break;
        default:
            ASSERT_TRUE(backlog.send_from(backlog.begin() + up_to(backlog.size())));
            if (backlog.size() > (4 << 20)) {
                ASSERT_TRUE(backlog.send_from(backlog.end()));
                ASSERT_TRUE(backlog.confirm(backlog.end()));
            }
        }
    }
}

TEST(Backlog, WhatWasGivenStaysWhereItIsUntilItIsConfirmed)
{
    Backlog backlog;
    backlog.add(bytes_at(0, 1000));
    const auto first = backlog.send(1000);
    backlog.add(bytes_at(1000, 4 << 20));
    EXPECT_TRUE(first == bytes_at(0, 1000));
    EXPECT_TRUE(backlog.send_from(0));
    EXPECT_EQ(backlog.send(1000).data(), first.data());
}

TEST(Backlog, KnowsWhatItHasNotGot)
{
    Backlog backlog;
    backlog.add("0123456789");
    EXPECT_FALSE(backlog.confirm(1)); // not sent yet
    EXPECT_EQ(backlog.send(4), "0123");
    EXPECT_TRUE(backlog.confirm(3));
    EXPECT_FALSE(backlog.send_from(2));
    EXPECT_FALSE(backlog.send_from(11));
    EXPECT_TRUE(backlog.confirm(1)); // already confirmed
    EXPECT_EQ(backlog.begin(), 3U);
    EXPECT_EQ(backlog.size(), 7U);
    EXPECT_FALSE(backlog.all_sent());
}

} // namespace
} // namespace gpuq::remote
