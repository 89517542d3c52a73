// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/log_times.h"

#include "core/layout.h"
#include "fakes/memory_store.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpuq {
namespace {

using Marks = std::vector<LogTimes::Mark>;

Time at(int milliseconds)
{
    return Time(std::chrono::milliseconds(milliseconds));
}

TEST(LogTime, IsALine)
{
    const LogTime time{at(1'700'000'123), {12, 3}};
    EXPECT_EQ(to_line(time), "1700000123 12 3\n");
    EXPECT_EQ(parse_log_time("1700000123 12 3"), time);
    for (const char* invalid : {"", "1", "1 2", "1 2 ", "1 2 3 4", "-1 2 3", "x 2 3", "1  2 3",
                                "99999999999999999 2 3", "1 99999999999999999999 3"}) {
        EXPECT_FALSE(parse_log_time(invalid)) << invalid;
    }
}

class LogTimesTest : public testing::Test {
protected:
    void append(const std::string& text)
    {
        m_store.append(layout::times(m_key, LinkNumber{1}), text);
    }

    fakes::MemoryStore m_store;
    RunKey m_key = *RunKey::parse("20261123T072953.601Z-9ace793821375167");
    LogTimes m_out{m_store, m_key, LinkNumber{1}, Stream::out};
    LogTimes m_err{m_store, m_key, LinkNumber{1}, Stream::err};
};

TEST_F(LogTimesTest, AreThoseOfOneStream)
{
    EXPECT_EQ(m_out.next(), Marks{}) << "no file";
    append("1000 10 0\n2000 10 5\n30");
    EXPECT_EQ(m_out.next(), (Marks{{0, Time()}, {10, at(1000)}}));
    EXPECT_EQ(m_err.next(), (Marks{{0, Time()}, {5, at(2000)}}));
    append("00 20 5\ninvalid\n4000 30 6\n");
    EXPECT_EQ(m_out.next(), (Marks{{20, at(3000)}, {30, at(4000)}}));
    EXPECT_EQ(m_err.next(), (Marks{{6, at(4000)}}));
    EXPECT_EQ(m_out.next(), Marks{});
}

TEST(LogTimesPart, EndsWithTheMarkAfterIt)
{
    const auto part = [](std::uint64_t offset, const Marks& marks) {
        return LogTimes::part_from(offset, marks);
    };
    const Marks marks{{10, at(1000)}, {30, at(4000)}};
    EXPECT_EQ(part(0, marks), (LogTimes::Part{std::nullopt, 10})) << "older than the first mark";
    EXPECT_EQ(part(10, marks), (LogTimes::Part{at(4000), 30}));
    EXPECT_EQ(part(29, marks), (LogTimes::Part{at(4000), 30}));
    const LogTimes::Part unknown{std::nullopt, std::numeric_limits<std::uint64_t>::max()};
    EXPECT_EQ(part(30, marks), unknown);
    EXPECT_EQ(part(0, {}), unknown);
}

TEST_F(LogTimesTest, AreUnknownBeforeThePartOfALargeFileThatIsRead)
{
    std::string text;
    int last = 0;
    while (text.size() < 2 * LogTimes::k_window) {
        ++last;
        text += to_line({at(last), {static_cast<std::uint64_t>(last), 0}});
    }
    append(text);
    const Marks marks = m_out.next();
    ASSERT_FALSE(marks.empty());
    EXPECT_GT(marks.front().size, 1U) << "the first one has no time for the bytes before it";
    EXPECT_EQ(marks.back(), (LogTimes::Mark{static_cast<std::uint64_t>(last), at(last)}));
    EXPECT_LE(marks.size(), LogTimes::k_window / 10);
}

} // namespace
} // namespace gpuq
