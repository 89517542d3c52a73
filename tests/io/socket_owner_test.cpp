// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/socket_owner.h"

#include "io/descriptor.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr uid_t k_daemon = 1;

struct Loopback {
    sockaddr_storage storage{};
    socklen_t size = 0;
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Loopback loopback(int family)
{
    Loopback made;
    if (family == AF_INET) {
        sockaddr_in four{};
        four.sin_family = AF_INET;
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::memcpy(&made.storage, &four, made.size = sizeof four);
    } else {
        sockaddr_in6 six{};
        six.sin6_family = AF_INET6;
        six.sin6_addr = in6addr_loopback;
        std::memcpy(&made.storage, &six, made.size = sizeof six);
    }
    return made;
}

/// Listens on a free port and stores the address in `at`.
Descriptor listening(int family, Loopback& at)
{
    Descriptor made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    at = loopback(family);
    if (::bind(made.get(), at.get(), at.size) != 0 || ::listen(made.get(), 8) != 0 ||
        ::getsockname(made.get(), at.get(), &at.size) != 0) {
        made.reset();
    }
    return made;
}

Descriptor connected(Loopback at)
{
    Descriptor made(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(made.get(), at.get(), at.size) != 0) {
        made.reset();
    }
    return made;
}

/// A process of another user that does `work`, reports success and waits to be killed.
class Other {
public:
    explicit Other(const std::function<bool()>& work)
    {
        Pipe report_pipe = make_pipe().value();
        m_pid = ::fork();
        if (m_pid == 0) {
            const bool done = ::setuid(k_daemon) == 0 && work();
            write_all(report_pipe.write.get(), done ? "y" : "n");
            ::pause();
            ::_exit(0);
        }
        char answer = 0;
        EXPECT_EQ(::read(report_pipe.read.get(), &answer, 1), 1);
        EXPECT_EQ(answer, 'y');
    }
    ~Other()
    {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

private:
    pid_t m_pid = -1;
};

class SocketOwner : public testing::TestWithParam<int> {
protected:
    void SetUp() override
    {
        m_listener = listening(GetParam(), m_at);
        if (!m_listener) {
            GTEST_SKIP() << "no loopback address of this family";
        }
    }
    Loopback m_at;
    Descriptor m_listener;
};

TEST_P(SocketOwner, IsOneselfAtBothEnds)
{
    const Descriptor client = connected(m_at);
    ASSERT_TRUE(client);
    EXPECT_EQ(user_of_server(client.get()), ::geteuid()) << "not accepted yet";
    const Descriptor accepted(::accept(m_listener.get(), nullptr, nullptr));
    EXPECT_EQ(user_of_server(client.get()), ::geteuid());
    EXPECT_EQ(user_of_client(accepted.get()), ::geteuid());
    EXPECT_TRUE(is_within_machine(client.get()));
}

TEST_P(SocketOwner, OfAListenerIsFoundWithoutAConnection)
{
    sockaddr_in start{}; // the port is at the same place in both
    std::memcpy(&start, &m_at.storage, sizeof start);
    EXPECT_EQ(user_of_listener(GetParam(), ntohs(start.sin_port)), ::geteuid());
    ::fcntl(m_listener.get(), F_SETFL, O_NONBLOCK);
    EXPECT_EQ(::accept(m_listener.get(), nullptr, nullptr), -1);
    m_listener.reset();
    EXPECT_EQ(user_of_listener(GetParam(), ntohs(start.sin_port)), std::nullopt);
}

TEST_P(SocketOwner, OfAClosedEndIsNotKnown)
{
    Descriptor client = connected(m_at);
    const Descriptor accepted(::accept(m_listener.get(), nullptr, nullptr));
    client.reset();
    EXPECT_EQ(user_of_client(accepted.get()), std::nullopt) << "not root, whose number is 0";
}

TEST_P(SocketOwner, OfAnotherUserIsTold)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root may be somebody else";
    }
    Descriptor theirs;
    const Other visitor([&] { return (theirs = connected(m_at)).get() >= 0; });
    const Descriptor accepted(::accept(m_listener.get(), nullptr, nullptr));
    EXPECT_EQ(user_of_client(accepted.get()), k_daemon);
}

TEST_P(SocketOwner, OfAnotherUsersServerIsTold)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root may be somebody else";
    }
    Pipe port = make_pipe().value();
    Descriptor theirs;
    const Other server([&] {
        Loopback at;
        theirs = listening(GetParam(), at);
        return ::write(port.write.get(), &at, sizeof at) == sizeof at;
    });
    Loopback at;
    ASSERT_EQ(::read(port.read.get(), &at, sizeof at), static_cast<ssize_t>(sizeof at));
    const Descriptor client = connected(at);
    ASSERT_TRUE(client);
    EXPECT_EQ(user_of_server(client.get()), k_daemon);
}

INSTANTIATE_TEST_SUITE_P(Families, SocketOwner, testing::Values(AF_INET, AF_INET6));

/// A listener on [::] accepts IPv4 connections too.
TEST(SocketOwnerOfBoth, IsFoundForEither)
{
    Descriptor listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    socklen_t size = sizeof any;
    auto* const raw = reinterpret_cast<sockaddr*>(&any);
    if (::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 8) != 0 ||
        ::getsockname(listener.get(), raw, &size) != 0) {
        GTEST_SKIP() << "no IPv6";
    }
    Loopback four = loopback(AF_INET);
    sockaddr_in storage{};
    std::memcpy(&storage, &four.storage, sizeof storage);
    storage.sin_port = any.sin6_port;
    std::memcpy(&four.storage, &storage, sizeof storage);
    const Descriptor client = connected(four);
    ASSERT_TRUE(client);
    EXPECT_EQ(user_of_server(client.get()), ::geteuid());
    const Descriptor accepted(::accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(user_of_server(client.get()), ::geteuid());
}

TEST(AbstractSocketOwner, IsTold)
{
    EXPECT_EQ(user_of_abstract_socket("gpuq-test-nobody-has-this"), std::nullopt);
}

} // namespace
} // namespace gpuq
