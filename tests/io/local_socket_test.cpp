// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/local_socket.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq {
namespace {

std::string a_name()
{
    static int number = 0;
    return fmt::format("gpuq-test-{}-{}", ::getpid(), ++number);
}

TEST(LocalSocket, ConnectsToWhoeverOfTheUserListens)
{
    const std::string name = a_name();
    const auto listener = listen_at(name, 1);
    ASSERT_TRUE(listener) << listener.error().text;
    const auto client = connect_to(name);
    ASSERT_TRUE(client) << client.error().text;
    const Descriptor other(::accept(listener->get(), nullptr, nullptr));
    EXPECT_TRUE(is_same_user(other.get()));
    ASSERT_TRUE(write_all(client->get(), "hello"));
    char heard[8] = {};
    EXPECT_EQ(::read(other.get(), heard, sizeof heard), 5);
    EXPECT_STREQ(heard, "hello");
}

TEST(LocalSocket, InTheFileSystemIsConnectedToWithoutWaiting)
{
    const std::string path = "/tmp/" + a_name();
    EXPECT_FALSE(connect_to_path(path));
    EXPECT_EQ(errno, ENOENT);
    EXPECT_FALSE(connect_to_path(std::string(200, 'x')));
    EXPECT_EQ(errno, ENAMETOOLONG);
    EXPECT_FALSE(connect_to_path(""));
    const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), path.size());
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_FALSE(connect_to_path(path));
    EXPECT_EQ(errno, ECONNREFUSED);
    ASSERT_EQ(::listen(listener.get(), 0), 0);
    const Descriptor first = connect_to_path(path);
    EXPECT_TRUE(first);
    EXPECT_FALSE(connect_to_path(path)) << "its queue is full";
    EXPECT_EQ(errno, EAGAIN);
    ::unlink(path.c_str());
}

TEST(LocalSocket, IsMissingWhereNobodyListens)
{
    const std::string name = a_name();
    EXPECT_EQ(connect_to(name).error().kind, Error::Kind::missing);
    {
        const auto listener = listen_at(name, 1);
        ASSERT_TRUE(listener);
    }
    EXPECT_EQ(connect_to(name).error().kind, Error::Kind::missing)
        << "the name goes with its socket";
}

TEST(LocalSocket, HasOneHolderAtATime)
{
    const std::string name = a_name();
    const auto first = listen_at(name, 1);
    ASSERT_TRUE(first);
    const auto second = listen_at(name, 1);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, Error::Kind::busy);
    EXPECT_EQ(second.error().text,
              fmt::format("the socket @{} is in use by another process", name));
}

TEST(LocalSocket, TakesNoNameThatIsTooLong)
{
    const std::string name(108, 'x');
    EXPECT_EQ(connect_to(name).error().kind, Error::Kind::io);
    EXPECT_EQ(listen_at(name, 1).error().kind, Error::Kind::io);
}

TEST(LocalSocket, OfSomebodyElseIsNotUsed)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root may be somebody else";
    }
    const std::string name = a_name();
    Result<Pipe> report_pipe = make_pipe();
    ASSERT_TRUE(report_pipe);
    const pid_t somebody = ::fork();
    if (somebody == 0) {
        constexpr uid_t k_closed_port = 65534;
        const bool changed = ::setuid(k_closed_port) == 0;
        const auto listener = listen_at(name, 1);
        write_all(report_pipe->write.get(), changed && listener ? "y" : "n");
        ::pause();
        ::_exit(0);
    }
    char answer = 0;
    ASSERT_EQ(::read(report_pipe->read.get(), &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    const std::string whose = fmt::format("the socket @{} belongs to user nobody (65534)", name);
    EXPECT_EQ(connect_to(name).error().kind, Error::Kind::denied);
    EXPECT_EQ(connect_to(name).error().text, whose);
    // The listener never accepts: a connection must not wait once its queue is full.
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(connect_to(name).error().text, whose);
    }
    EXPECT_EQ(listen_at(name, 1).error().text, whose);
    const std::string free = a_name();
    std::vector<Error> taken;
    const auto other = listen_at_first({name, free}, 1, taken);
    ASSERT_TRUE(other);
    EXPECT_EQ(taken.size(), 1U);
    EXPECT_TRUE(connect_to_first({name, free}));
    ::kill(somebody, SIGKILL);
    ::waitpid(somebody, nullptr, 0);
}

} // namespace
} // namespace gpuq
