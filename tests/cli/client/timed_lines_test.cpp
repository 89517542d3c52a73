// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/timed_lines.h"

#include "core/layout.h"
#include "fakes/memory_store.h"

#include <gtest/gtest.h>

#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<TimedLines::Text>;

const TimedLines::Steady k_now{100s};

/// Local time is UTC.
class TimedLinesTest : public testing::Test {
protected:
    TimedLinesTest()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
    }
    ~TimedLinesTest() override
    {
        ::unsetenv("TZ");
        ::tzset();
    }
    void times(const std::string& text, int link = 1)
    {
        m_store.append(layout::times(m_key, LinkNumber{link}), text);
    }
    void add(Stream stream, std::uint64_t offset, const std::string& bytes,
             TimedLines::Steady now = k_now, int link = 1)
    {
        m_lines.add(LinkNumber{link}, stream, offset, bytes, now);
    }

    fakes::MemoryStore m_store;
    RunKey m_key = RunKey::make(Time{1'795'000'000s}, {});
    TimedLines m_lines{m_store, m_key};
};

TEST_F(TimedLinesTest, HaveTheTimeAtWhichTheyBegan)
{
    times("1795000000000 4 0\n1795000001000 10 3\n");
    add(Stream::out, 0, "one\ntw");
    add(Stream::err, 0, "e\n");
    add(Stream::out, 6, "o\n\n");
    EXPECT_EQ(m_lines.take(k_now), (Texts{{Stream::out, "2026-11-18 11:06:40 one\n"},
                                          {Stream::err, "2026-11-18 11:06:41 e\n"},
                                          {Stream::out, "2026-11-18 11:06:41 two\n"},
                                          {Stream::out, "2026-11-18 11:06:41 \n"}}));
}

TEST_F(TimedLinesTest, WaitForTheirTimeButNotForLong)
{
    times("1795000000000 4 0\n");
    add(Stream::out, 0, "one\ntwo\n");
    add(Stream::err, 0, "error\n");
    EXPECT_EQ(m_lines.take(k_now).size(), 1U);
    EXPECT_TRUE(m_lines.waits());
    EXPECT_EQ(m_lines.take(k_now + 2s), Texts{}); // standard error stays behind
    times("1795000002000 8 0\n");
    EXPECT_EQ(m_lines.take(k_now + 2s), (Texts{{Stream::out, "2026-11-18 11:06:42 two\n"}}));
    EXPECT_EQ(m_lines.take(k_now + 3s), (Texts{{Stream::err, "?                   error\n"}}));
    EXPECT_FALSE(m_lines.waits());
}

TEST_F(TimedLinesTest, OfEachLinkHaveItsTimes)
{
    times("1795000000000 4 0\n");
    times("1795000100000 4 0\n", 2);
    add(Stream::out, 0, "one\n");
    add(Stream::out, 0, "two\n", k_now, 2);
    EXPECT_EQ(m_lines.take(k_now), (Texts{{Stream::out, "2026-11-18 11:06:40 one\n"},
                                          {Stream::out, "2026-11-18 11:08:20 two\n"}}));
}

TEST_F(TimedLinesTest, AreCompleteAtTheEnd)
{
    times("1795000000000 3 0\n");
    add(Stream::out, 0, "one");
    EXPECT_EQ(m_lines.take(k_now + 1h), Texts{});
    EXPECT_EQ(m_lines.take_rest(), (Texts{{Stream::out, "2026-11-18 11:06:40 one\n"}}));
    EXPECT_EQ(m_lines.take_rest(), Texts{});
}

TEST(TimedLines, WithoutRecordsAreUnknownAtOnce)
{
    TimedLines lines;
    lines.add({}, Stream::out, 0, "one\n", k_now);
    EXPECT_EQ(lines.take(k_now), (Texts{{Stream::out, "?                   one\n"}}));
}

} // namespace
} // namespace gpuq::cli
