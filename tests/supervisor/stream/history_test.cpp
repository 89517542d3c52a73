// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/history.h"

#include "supervisor/base/descriptor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

/// A log on disk as a supervisor writes it.
class Log {
public:
    Log(const std::string& out, const std::string& err, const std::string& order)
        : m_files{file(out), file(err), file(order)}
    {
    }
    /// All output for a client that continues at `at`, in order.
    std::string read(Position at, Position end, std::size_t size = 1000)
    {
        Bookmark bookmark{at, 0, {}};
        return read_on_from(bookmark, end, size);
    }
    /// The same for a client that has read up to `bookmark`.
    std::string read_on_from(Bookmark& bookmark, Position end, std::size_t size = 1000)
    {
        std::string text;
        char last = 0;
        for (int rounds = 0; rounds < 100; ++rounds) {
            for (const Piece& piece : read_on(files(), bookmark, end, size)) {
                const char mark = piece.stream == Stream::out ? 'o' : 'e';
                text += mark != last ? std::string{mark} : "";
                last = mark;
                text += piece.bytes;
            }
        }
        EXPECT_GE(bookmark.at[0], end[0]);
        EXPECT_GE(bookmark.at[1], end[1]);
        return text;
    }
    Ranges& lost(Stream stream) { return m_lost[index_of(stream)]; }

private:
    static Descriptor file(const std::string& text)
    {
        std::string name = testing::TempDir() + "gpuq-history-XXXXXX";
        Descriptor made(::mkstemp(name.data()));
        ::unlink(name.c_str());
        EXPECT_TRUE(write_all(made.get(), text));
        return made;
    }
    LogFiles files() const
    {
        return {{m_files[0].get(), m_files[1].get()}, m_files[2].get(), {&m_lost[0], &m_lost[1]}};
    }
    std::array<Descriptor, 3> m_files;
    std::array<Ranges, 2> m_lost;
};

TEST(History, FollowsTheOrder)
{
    Log log("AABBBC", "xyyz", "o 2\ne 1\no 3\ne 2\n");
    // Not recorded in `order` yet: the current segment.
    EXPECT_EQ(log.read({0, 0}, {6, 3}), "oAAexoBBBeyyoC");
    for (const std::size_t size : {1, 2, 3}) {
        EXPECT_EQ(log.read({0, 0}, {6, 3}, size), "oAAexoBBBeyyoC") << size;
    }
}

TEST(History, BeginsAndEndsAnywhere)
{
    Log log("AABBBC", "xyyz", "o 2\ne 1\no 3\ne 2\n");
    EXPECT_EQ(log.read({3, 0}, {6, 3}), "exoBBeyyoC");
    EXPECT_EQ(log.read({0, 2}, {4, 2}), "oAABB");
    EXPECT_EQ(log.read({6, 3}, {6, 3}), "");
    EXPECT_EQ(log.read({100, 100}, {6, 3}), "");
}

TEST(History, OneStreamNeedsNoOrder)
{
    EXPECT_EQ(Log("ABC", "", "").read({1, 0}, {3, 0}), "oBC");
}

TEST(History, StepsOverWhatIsLostAndWhatIsNotThere)
{
    Log log("AA\0\0BB", "", "");
    log.lost(Stream::out).add(2, 4);
    EXPECT_EQ(log.read({0, 0}, {4, 0}), "oAA");
    EXPECT_EQ(Log("AB", "", "").read({0, 0}, {9, 3}), "oAB");
}

TEST(History, GivesBothStreamsUpToAnEndWithinASegment)
{
    // `order` was compacted: the end is a position of the program's output, but not of this order.
    Log log("AAABB", "xxxyy", "o 5\ne 5\n");
    EXPECT_EQ(log.read({0, 0}, {3, 3}), "oAAAexxx");
    EXPECT_EQ(log.read({0, 0}, {3, 3}, 2), "oAAAexxx");
    Bookmark bookmark;
    EXPECT_EQ(log.read_on_from(bookmark, {3, 3}), "oAAAexxx");
    EXPECT_EQ(log.read_on_from(bookmark, {5, 5}), "oBBeyy");
}

TEST(History, IgnoresWhatIsNoOrder)
{
    EXPECT_EQ(
        Log("AB", "xy", "o 1\nnonsense\ne 99999999999999999999\ne 1\no ").read({0, 0}, {2, 2}),
        "oAexoBey");
}

TEST(Ranges, MergeAndAnswer)
{
    Ranges ranges;
    ranges.add(10, 20);
    ranges.add(20, 30);
    ranges.add(50, 60);
    EXPECT_EQ(ranges.past(10), 30U);
    EXPECT_EQ(ranges.past(30), 30U);
    EXPECT_EQ(ranges.next(30), 50U);
    EXPECT_EQ(ranges.next(61), ~0ULL);
}

} // namespace
} // namespace gpuq::supervisor
