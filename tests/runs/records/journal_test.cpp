// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/journal.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

const Time k_time{std::chrono::microseconds{1'795'180'318'042'007}};

Event ended_by_memory()
{
    Event event;
    event.kind = Event::Kind::ended;
    event.at = k_time;
    event.status = 137;
    event.cause = Cause::memory;
    event.detail = "n1 ran out of memory";
    event.tail = "line 1\nline \"2\"\n";
    return event;
}

Event lost_bytes()
{
    Event event;
    event.kind = Event::Kind::log_lost;
    event.at = k_time;
    event.stream = Stream::err;
    event.from = 1ULL << 33;
    event.to = ~0ULL;
    return event;
}

Event start()
{
    Event event;
    event.at = k_time;
    event.job = 4'000'000'000U;
    event.host = "n1";
    event.address = "192.0.2.7:4711";
    event.pid = 4242;
    return event;
}

TEST(Journal, EventsSurviveInTheirOrder)
{
    const std::vector<Event> events = {start(), lost_bytes(), ended_by_memory()};
    std::string bytes;
    for (const Event& event : events) {
        bytes += to_line(event);
    }
    EXPECT_EQ(parse_journal(bytes), events);
}

TEST(Journal, AnEventIsOneLine)
{
    const std::string line = to_line(ended_by_memory());
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_NE(line.find(R"("v":1)"), std::string::npos);
    EXPECT_NE(line.find(R"("at":"2026-11-20T13:11:58.042007Z")"), std::string::npos);
}

TEST(Journal, ATornLastLineIsIgnoredWhereverItWasTorn)
{
    const std::string whole = to_line(start());
    const std::string last = to_line(ended_by_memory());
    for (std::size_t size = 0; size < last.size(); ++size) {
        EXPECT_EQ(parse_journal(whole + last.substr(0, size)), std::vector<Event>{start()});
    }
}

TEST(Journal, WhatItDoesNotKnowIsSkipped)
{
    const std::string odd = "{\"v\":2,\"at\":\"x\",\"event\":\"ended\"}\n"
                            "{\"v\":1,\"at\":\"2026-11-20T13:11:58Z\",\"event\":\"sang\"}\n"
                            "\n[1]\nnonsense\n\0\xff\n";
    EXPECT_EQ(parse_journal(odd + to_line(start())), std::vector<Event>{start()});
}

TEST(Journal, BytesThatAreNotUtf8AreReplaced)
{
    Event event = ended_by_memory();
    event.tail = "a\xff"
                 "b";
    EXPECT_EQ(parse_journal(to_line(event)).at(0).tail, "a\uFFFDb");
}

TEST(Journal, EachCauseHasAWordOfItsOwn)
{
    for (int i = 0; i <= static_cast<int>(Cause::lost); ++i) {
        const auto cause = static_cast<Cause>(i);
        EXPECT_FALSE(word(cause).empty());
        EXPECT_EQ(cause_from_word(word(cause)), cause);
    }
    EXPECT_EQ(cause_from_word("boredom"), std::nullopt);
}

} // namespace
} // namespace gpuq
