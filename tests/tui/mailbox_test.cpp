// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/mailbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace gpuq::tui {
namespace {

DetailRead detail_with(const std::string& key, double loss)
{
    DetailRead read;
    read.detail.key = key;
    read.detail.loss = loss;
    return read;
}

TEST(Mailbox, KeepsOnlyTheNewestOfResultsThatAreReadAgain)
{
    std::deque<Message> messages;
    for (int i = 0; i < 100; ++i) {
        PictureRead read;
        read.picture.cluster = std::to_string(i);
        add_newest(messages, read);
        add_newest(messages, detail_with("a", i));
        add_newest(messages, detail_with("b", i));
        add_newest(messages, ComparisonRead{});
    }
    ASSERT_EQ(messages.size(), 4U);
    EXPECT_EQ(std::get<PictureRead>(messages[0]).picture.cluster, "99");
    EXPECT_EQ(std::get<DetailRead>(messages[2]).detail.key, "b");
    EXPECT_EQ(std::get<DetailRead>(messages[2]).detail.loss, 99);
}

TEST(Mailbox, LosesNoOutputAndNoEndOfACommand)
{
    std::deque<Message> messages;
    for (int i = 0; i < 3; ++i) {
        add_newest(messages, LogBytes{"key", Stream::out, std::to_string(i), false, 0, ""});
        add_newest(messages, Done{"done", false});
    }
    EXPECT_EQ(messages.size(), 6U);
}

} // namespace
} // namespace gpuq::tui
