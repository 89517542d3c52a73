// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client_forwards.h"

#include "fakes/socket_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// A socket that listens on the loopback interface, and a connection to it.
SocketPair listener_and_visitor()
{
    SocketPair pair{Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                    Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(pair.one.get(), place, size), 0);
    EXPECT_EQ(::listen(pair.one.get(), 1), 0);
    EXPECT_EQ(::getsockname(pair.one.get(), place, &size), 0);
    EXPECT_EQ(::connect(pair.other.get(), place, size), 0);
    return pair;
}

/// While it exists, this process can open no further descriptor.
class NoDescriptorLeft {
public:
    NoDescriptorLeft()
    {
        ::getrlimit(RLIMIT_NOFILE, &m_before);
        rlimit less = m_before;
        const Descriptor next(::dup(STDERR_FILENO));
        less.rlim_cur = static_cast<rlim_t>(next.get());
        ::setrlimit(RLIMIT_NOFILE, &less);
    }
    NoDescriptorLeft(const NoDescriptorLeft&) = delete;
    NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;
    ~NoDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &m_before); }

private:
    rlimit m_before{};
};

TEST(ClientForwards, LetAConnectionWaitForADescriptor)
{
    EventLoop loop;
    SocketPair link = socket_pair(SOCK_NONBLOCK);
    Descriptor second = copy_of(link.one);
    Channel channel(std::move(link.one), std::move(second));
    SocketPair sockets = listener_and_visitor();
    std::vector<std::vector<Descriptor>> listeners(1);
    listeners[0].push_back(std::move(sockets.one));
    std::vector<std::string> messages;
    ClientForwards forwards(loop, std::move(listeners),
                            {[&] { return &channel; }, [] { return true; },
                             [&](const std::string& message) { messages.push_back(message); }});
    {
        const NoDescriptorLeft none;
        const auto until = std::chrono::steady_clock::now() + 300ms;
        int rounds = 0;
        for (; std::chrono::steady_clock::now() < until; ++rounds) {
            loop.run_once(50ms);
        }
        EXPECT_LT(rounds, 20) << "it uses a processor";
        EXPECT_THAT(messages, ElementsAre(HasSubstr("a connection waits: ")));
    }
    pollfd dialled{link.other.get(), POLLIN, 0};
    for (int i = 0; i < 100 && ::poll(&dialled, 1, 0) == 0; ++i) {
        loop.run_once(50ms);
        (void)channel.write_some();
    }
    EXPECT_NE(dialled.revents, 0);
}

} // namespace
} // namespace gpuq::remote
