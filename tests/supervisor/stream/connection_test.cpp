// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/connection.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// A connection on a step's standard streams, and the frames that were sent over it.
class Greeting : public testing::Test {
protected:
    Greeting()
    {
        std::array<int, 2> ends{};
        EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
        m_reader = Descriptor(ends[0]);
        m_connection.emplace(0, Descriptor(), Descriptor(ends[1]), m_begin);
        m_connection->send(wire::Hello{wire::k_version, "key", 1, 42, "n1"});
    }

    /// Transmits at `time` after the begin. Returns the number of frames that can be read.
    std::size_t frames_after(Connection::Clock::duration time)
    {
        EXPECT_TRUE(m_connection->transmit(m_backlog, m_begin + time));
        char bytes[4096];
        const ssize_t size = ::read(m_reader.get(), bytes, sizeof bytes);
        m_decoder.feed(std::string_view(bytes, size > 0 ? static_cast<std::size_t>(size) : 0));
        std::size_t frames = 0;
        for (auto next = m_decoder.next(); next && *next; next = m_decoder.next()) {
            ++frames;
        }
        return frames;
    }

    Connection::Clock::time_point m_begin = Connection::Clock::now();
    Backlog m_backlog;
    Descriptor m_reader;
    wire::Decoder m_decoder;
    std::optional<Connection> m_connection;
};

TEST_F(Greeting, LeavesAtOnceWhenItIsNotHeld)
{
    EXPECT_EQ(frames_after(0ms), 1U);
}

TEST_F(Greeting, GoesAloneWhenNothingComesInTime)
{
    m_connection->hold(m_begin + 15ms, 4ms);
    EXPECT_EQ(frames_after(14ms), 0U);
    EXPECT_EQ(m_connection->held_until(), m_begin + 15ms);
    EXPECT_EQ(frames_after(15ms), 1U);
    m_backlog.append(Stream::out, "late");
    EXPECT_EQ(frames_after(16ms), 1U);
}

TEST_F(Greeting, TakesOutputAndTheEndAlong)
{
    m_connection->hold(m_begin + 15ms, 4ms);
    m_backlog.append(Stream::out, "hi\n");
    EXPECT_EQ(frames_after(2ms), 0U);
    EXPECT_EQ(m_connection->held_until(), m_begin + 6ms);
    m_connection->send_last(wire::Ended{});
    EXPECT_EQ(frames_after(3ms), 3U);
    EXPECT_FALSE(m_connection->held_until());
}

TEST_F(Greeting, WaitsForTheEndOnlySoLong)
{
    m_connection->hold(m_begin + 15ms, 4ms);
    m_backlog.append(Stream::out, "hi\n");
    EXPECT_EQ(frames_after(2ms), 0U);
    m_backlog.append(Stream::out, "more\n");
    EXPECT_EQ(frames_after(5ms), 0U);
    EXPECT_EQ(frames_after(6ms), 3U);
}

TEST_F(Greeting, WaitsForNoEndWhereNobodyNeedsIt)
{
    m_connection->hold(m_begin + 15ms, 0ms);
    m_backlog.append(Stream::out, "$ ");
    EXPECT_EQ(frames_after(2ms), 2U);
}

} // namespace
} // namespace gpuq::supervisor
