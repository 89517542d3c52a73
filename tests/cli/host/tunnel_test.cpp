// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/tunnel.h"

#include "ports/step_process.h"
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <future>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

struct Pipe {
    int read = -1, write = -1;
    Pipe()
    {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
            read = ends[0];
            write = ends[1];
        }
    }
};

std::string all_of(int fd)
{
    std::string text;
    std::array<char, 65536> piece{};
    for (ssize_t size = 0; (size = ::read(fd, piece.data(), piece.size())) > 0;) {
        text.append(piece.data(), static_cast<std::size_t>(size));
    }
    ::close(fd);
    return text;
}

void put(int fd, std::string_view text)
{
    while (!text.empty()) {
        const ssize_t size = ::write(fd, text.data(), text.size());
        ASSERT_GT(size, 0);
        text.remove_prefix(static_cast<std::size_t>(size));
    }
}

/// A running tunnel; the test holds the other ends of its five pipes.
class ATunnel : public testing::Test {
protected:
    ATunnel() { ::signal(SIGPIPE, SIG_IGN); }

    Pipe m_in, m_out, m_step_in, m_step_out, m_step_err;
    std::future<TunnelEnd> m_end = std::async(std::launch::async, [this] {
        const StepProcess step{1, 0, m_step_in.write, m_step_out.read, m_step_err.read};
        TunnelEnd end = carry(step, m_in.read, m_out.write);
        ::close(m_out.write);
        ::close(m_in.read);
        return end;
    });

    void send(const std::string& bytes)
    {
        put(m_step_out.write,
            wire::encode(wire::Output{Stream::out, 0, bytes}).append(wire::k_flush));
    }
    void end_step()
    {
        ::close(m_step_err.write);
        ::close(m_step_out.write);
    }
};

TEST_F(ATunnel, CarriesBothWaysUntilTheStepHasEnded)
{
    const std::string much(3 << 20, 'x');
    auto taken = std::async(std::launch::async, [this] { return all_of(m_step_in.read); });
    put(m_in.write, much);
    ::close(m_in.write);
    EXPECT_TRUE(taken.get() == much);
    send("SSH-2.0\r\n");
    send(std::string("\0\n\xff", 3));
    end_step();
    EXPECT_EQ(all_of(m_out.read), std::string("SSH-2.0\r\n\0\n\xff", 12));
    EXPECT_TRUE(m_end.get().connected);
}

TEST_F(ATunnel, TakesWhatIsSaidAlsoWhileNobodyReadsIt)
{
    const std::string piece(60'000, 'y');
    for (int i = 0; i < 100; ++i) {
        send(piece); // 6 MB: a blocking write would hang here
    }
    end_step();
    ::close(m_in.write);
    EXPECT_EQ(all_of(m_out.read).size(), 100 * piece.size());
    m_end.get();
    ::close(m_step_in.read);
}

TEST_F(ATunnel, EndsWhenItsReaderHasGone)
{
    ::close(m_out.read);
    ASSERT_EQ(m_end.wait_for(20s), std::future_status::ready);
    EXPECT_EQ(all_of(m_step_in.read), ""); // the remote end sees end-of-file on its input
    end_step();
    ::close(m_in.write);
}

TEST_F(ATunnel, TellsWhyNothingAnswered)
{
    put(m_step_err.write, "gpuq: no sshd on node n0\n");
    end_step();
    ::close(m_in.write);
    const TunnelEnd end = m_end.get();
    EXPECT_FALSE(end.connected);
    EXPECT_EQ(end.errors, "gpuq: no sshd on node n0\n");
    EXPECT_EQ(all_of(m_out.read), "");
    ::close(m_step_in.read);
}

TEST_F(ATunnel, BreaksAtNonsense)
{
    put(m_step_out.write, std::string(100, '\xff'));
    EXPECT_EQ(all_of(m_out.read), "");
    EXPECT_FALSE(m_end.get().connected);
    end_step();
    ::close(m_in.write);
    ::close(m_step_in.read);
}

} // namespace
} // namespace gpuq::cli
