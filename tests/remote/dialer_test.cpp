// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/dialer.h"

#include "io/descriptor.h"
#include "wire/remote_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::remote {
namespace {

namespace frames = wire::remote;

constexpr uid_t k_daemon = 1;
constexpr int k_of_daemon = 0; ///< numbers of destinations
constexpr int k_own = 1;
constexpr int k_nobodys = 2;

/// A server on 127.0.0.1 that greets each client and then echoes its input.
class Server {
public:
    explicit Server(uid_t user)
    {
        Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const raw = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        // A socket belongs to the user of the process that created it.
        Pipe report_pipe = make_pipe().value();
        m_pid = ::fork();
        if (m_pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (user != ::geteuid()) {
                (void)!::setuid(user);
                socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            }
            (void)::bind(socket.get(), raw, size);
            ::listen(socket.get(), 8);
            ::getsockname(socket.get(), raw, &size);
            const std::uint16_t port = ntohs(address.sin_port);
            (void)!::write(report_pipe.write.get(), &port, sizeof port);
            serve(socket.get());
        }
        EXPECT_EQ(::read(report_pipe.read.get(), &m_port, sizeof m_port),
                  static_cast<ssize_t>(sizeof m_port));
    }
    ~Server()
    {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    std::string destination() const { return fmt::format("localhost:{}", m_port); }

private:
    [[noreturn]] static void serve(int socket)
    {
        while (true) {
            const Descriptor client(::accept(socket, nullptr, nullptr));
            write_all(client.get(), "hello ");
            char piece[256];
            ssize_t size = 0;
            while ((size = ::read(client.get(), piece, sizeof piece)) > 0) {
                write_all(client.get(), {piece, static_cast<std::size_t>(size)});
            }
        }
    }
    pid_t m_pid = -1;
    std::uint16_t m_port = 0;
};

/// A dialer in a child process, with its frames and reports.
class DialerTest : public testing::Test {
protected:
    void begin(std::vector<std::string> destinations)
    {
        Pipe in = make_pipe().value(), out = make_pipe().value(), reports = make_pipe().value();
        m_pid = ::fork();
        if (m_pid == 0) {
            in.write.reset();
            out.read.reset();
            const int report = reports.write.get();
            run_dialer({std::move(in.read), std::move(out.write), std::move(destinations), "n0",
                        [report](const std::string& text) { write_all(report, text + "\n"); }});
            ::_exit(0);
        }
        m_to = std::move(in.write);
        m_from = std::move(out.read);
        m_reports = std::move(reports.read);
    }
    void TearDown() override
    {
        m_to.reset();
        int status = -1;
        EXPECT_EQ(::waitpid(m_pid, &status, 0), m_pid);
        EXPECT_EQ(status, 0) << "it ends when nothing more can come";
    }
    void send(const frames::Frame& frame) { write_all(m_to.get(), frames::encode(frame)); }
    /// The next frame other than a heartbeat.
    frames::Frame next()
    {
        while (true) {
            auto frame = m_decoder.next();
            if (frame && *frame) {
                if (!std::holds_alternative<frames::Beat>(**frame)) {
                    return **frame;
                }
                continue;
            }
            std::array<char, 4096> piece;
            const ssize_t size = ::read(m_from.get(), piece.data(), piece.size());
            if (size <= 0) {
                return frames::Bye{};
            }
            m_decoder.feed({piece.data(), static_cast<std::size_t>(size)});
        }
    }
    std::string bytes_until_end(std::uint32_t stream)
    {
        std::string bytes;
        while (true) {
            const frames::Frame frame = next();
            if (const auto* more = std::get_if<frames::StreamBytes>(&frame)) {
                EXPECT_EQ(more->stream, stream);
                bytes += more->bytes;
            } else if (std::holds_alternative<frames::StreamEnd>(frame)) {
                return bytes;
            } else if (!std::holds_alternative<frames::StreamTaken>(frame)) {
                return bytes + " and another frame";
            }
        }
    }

    Descriptor m_to, m_from, m_reports;
    frames::Decoder m_decoder;
    pid_t m_pid = -1;
};

TEST_F(DialerTest, CarriesBothWaysToTheEnd)
{
    const Server server(::geteuid());
    begin({"localhost:1", server.destination()});
    send(frames::Dial{7, k_own});
    send(frames::StreamBytes{7, "and goodbye"}); // possibly before the connection is established
    send(frames::StreamEnd{7});
    EXPECT_EQ(bytes_until_end(7), "hello and goodbye");
    send(frames::Dial{8, k_own}); // a second connection
    send(frames::StreamEnd{8});
    EXPECT_EQ(bytes_until_end(8), "hello ");
}

TEST_F(DialerTest, ToAPortWithoutAServerIsGoneAtOnce)
{
    begin({"localhost:1"});
    send(frames::Dial{1, 0});
    EXPECT_EQ(next(), frames::Frame(frames::StreamClosed{1, ""}));
    send(frames::Dial{2, 5});
    EXPECT_EQ(next(), frames::Frame(frames::StreamClosed{2, "no such destination"}));
}

TEST_F(DialerTest, NeverReachesAnotherUsersServer)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root may be somebody else";
    }
    const Server theirs(k_daemon), own(::geteuid());
    begin({theirs.destination(), own.destination(), "localhost:1"});
    const std::string why = fmt::format(
        "{} on n0 is served by user daemon (1), not by you: not connected", theirs.destination());
    for (const std::uint32_t stream : {1U, 2U}) {
        send(frames::Dial{stream, k_of_daemon});
        send(frames::StreamBytes{stream, "a secret"});
        EXPECT_EQ(next(), frames::Frame(frames::StreamClosed{stream, why}));
    }
    char text[512] = {};
    const ssize_t size = ::read(m_reports.get(), text, sizeof text);
    ASSERT_GT(size, 0);
    EXPECT_EQ(std::string_view(text, static_cast<std::size_t>(size)), "--forward: " + why + "\n")
        << "once";
    send(frames::Dial{3, k_own});
    send(frames::StreamEnd{3});
    EXPECT_EQ(bytes_until_end(3), "hello ");
    send(frames::Dial{4, k_nobodys});
    EXPECT_EQ(next(), frames::Frame(frames::StreamClosed{4, ""}));
}

} // namespace
} // namespace gpuq::remote
