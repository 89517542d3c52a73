// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client_output.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <unistd.h>
#include <vector>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

class ClientOutputTest : public testing::Test {
protected:
    ClientOutputTest() { std::signal(SIGPIPE, SIG_IGN); } // as in main
    void take(std::uint64_t offset, const std::string& bytes)
    {
        const frames::OutputBytes frame{Stream::out, offset, bytes};
        ASSERT_TRUE(output.check(frame));
        output.take(frame);
    }

    Pipe pipe = *make_pipe();
    EventLoop loop;
    std::vector<std::uint64_t> confirmed;
    std::vector<std::size_t> closed;
    ClientOutput output{loop,
                        {{{pipe.write.get(), {}}, {-1, {}}}},
                        {[this](const frames::Taken& taken) {
                             confirmed.push_back(taken.out);
                             return true;
                         },
                         [this](std::size_t stream, int) { closed.push_back(stream); }}};
};

TEST_F(ClientOutputTest, OnlyWhatIsWrittenIsConfirmedInABatch)
{
    take(0, "hello");
    take(5, " world");
    EXPECT_EQ(output.written(), 11U);
    EXPECT_TRUE(confirmed.empty());
    loop.run_once();
    EXPECT_EQ(confirmed, std::vector<std::uint64_t>{11});
}

TEST_F(ClientOutputTest, AReaderThatDoesNotReadDoesNotKeepTheLoopBusy)
{
    const std::string text(100 << 10, 'x'); // more than the pipe takes
    take(0, text);
    EXPECT_LT(output.written(), text.size());
    EXPECT_FALSE(output.is_all_written());
    int rounds = 0;
    for (const auto until = EventLoop::Clock::now() + 500ms; EventLoop::Clock::now() < until;) {
        loop.run_once(100ms);
        rounds += 1;
    }
    EXPECT_LE(rounds, 7); // 5, and one for the confirmation
    EXPECT_EQ(confirmed, std::vector<std::uint64_t>{output.written()});
}

TEST_F(ClientOutputTest, RefusesBytesThatDoNotFollow)
{
    take(0, "hello");
    EXPECT_EQ(output.check({Stream::out, 4, "o"}).error().text, "output at an unexpected offset");
    EXPECT_EQ(output.check({Stream::out, 6, "o"}).error().text, "output at an unexpected offset");
}

TEST_F(ClientOutputTest, AStreamThatIsLongerAsShownKeepsTheHostsWindow)
{
    const auto twice = [](std::string_view bytes) { return std::string(2 * bytes.size(), 'x'); };
    ClientOutput longer(loop, {{{pipe.write.get(), twice}, {-1, {}}}},
                        {[](const frames::Taken&) { return true; }, [](std::size_t, int) {}});
    const std::string piece(64 << 10, '\n');
    std::uint64_t sent = 0;
    for (; sent < frames::k_output_room; sent += piece.size()) {
        const frames::OutputBytes frame{Stream::out, sent, piece};
        ASSERT_TRUE(longer.check(frame)) << sent;
        longer.take(frame);
    }
    EXPECT_EQ(longer.written(), 0U); // its reader does not read
    const std::string more(wire::k_max_payload + 1, '\n');
    EXPECT_EQ(longer.check({Stream::out, sent, more}).error().text, "output exceeds its window");
}

TEST_F(ClientOutputTest, AClosedReaderIsReportedOnceAndTheRestDiscarded)
{
    pipe.read.reset();
    take(0, "hello");
    take(5, "world");
    EXPECT_EQ(closed, std::vector<std::size_t>{0});
    EXPECT_TRUE(output.is_all_written());
}

} // namespace
} // namespace gpuq::remote
