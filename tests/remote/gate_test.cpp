// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/gate.h"

#include "io/local_socket.h"
#include "remote/lasting_link.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

/// A gate in a process of its own, and the server behind it.
struct Place {
    std::string name = fmt::format("gpuq-test-gate-{}", ::getpid());
    std::string path = fmt::format("/tmp/gpuq-test-gate-{}", ::getpid());
    Descriptor listener;
    pid_t pid = -1;

    explicit Place(const GatePatience& patience = {})
    {
        pid = ::fork();
        if (pid == 0) {
            ::_exit(run_gate(name, path, patience) ? 0 : 1);
        }
    }
    ~Place()
    {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        std::filesystem::remove(path);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void listen()
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, path.c_str());
        listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(::listen(listener.get(), 10), 0);
    }
};

/// The client: connects again whenever it is asked to.
struct Client {
    std::string name;
    char letter = 'b'; ///< of the session
    std::shared_ptr<LastingLink> link = std::make_shared<LastingLink>(std::string(32, letter));
    Channel channel{link};
    frames::Decoder decoder;
    std::string received;
    bool closed = false;

    void connect()
    {
        for (int tries = 0; tries < 500; ++tries) {
            if (auto socket = connect_to(name)) {
                Descriptor again(::dup(socket->get()));
                return link->connect(*std::move(socket), std::move(again));
            }
            std::this_thread::sleep_for(10ms);
        }
        FAIL() << "no gate";
    }

    /// Carries frames until the condition holds.
    template <typename Condition>
    bool wait(Condition condition)
    {
        for (int turn = 0; turn < 1000; ++turn) {
            (void)channel.write_some();
            (void)link->write({});
            auto bytes = channel.read_some();
            for (; bytes && !bytes->empty(); bytes = channel.read_some()) {
                decoder.feed(*bytes);
                for (auto frame = decoder.next(); frame && *frame; frame = decoder.next()) {
                    if (const auto* some = std::get_if<frames::StreamBytes>(&**frame)) {
                        received += some->bytes;
                    }
                    closed = closed || std::holds_alternative<frames::StreamClosed>(**frame);
                }
            }
            if (condition()) {
                return true;
            }
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }
};

TEST(Gate, KeepsTheConnectionsOfAClientThatIsCutOff)
{
    Place place;
    Client client{place.name};
    client.connect();
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(client.link->has_answered()); // the server does not listen yet
    place.listen();
    EXPECT_TRUE(client.wait([&] { return client.link->has_answered(); }));
    client.channel.send(frames::Dial{0, 0});
    client.channel.send(frames::StreamBytes{0, std::string("question")});
    client.wait([] { return true; });
    Descriptor server(::accept(place.listener.get(), nullptr, nullptr)); // the gate's own probe
    server.reset(::accept(place.listener.get(), nullptr, nullptr));
    std::array<char, 100> buffer{};
    EXPECT_EQ(::read(server.get(), buffer.data(), buffer.size()), 8);
    client.link->disconnect();
    EXPECT_EQ(::write(server.get(), "answer", 6), 6);
    client.connect();
    EXPECT_TRUE(client.wait([&] { return client.received == "answer"; }));
    // A client that leaves takes its connections along.
    client.channel.send(frames::Bye{});
    client.wait([&] { return client.link->is_settled() || !client.link->is_connected(); });
    EXPECT_LE(::read(server.get(), buffer.data(), buffer.size()), 0);
}

TEST(Gate, DropsAClientThatWasKilledSoonAfterAnotherHasCome)
{
    Place place({3h, 2s});
    place.listen();
    Client killed{place.name, 'b'};
    killed.connect();
    EXPECT_TRUE(killed.wait([&] { return killed.link->has_answered(); }));
    killed.channel.send(frames::Dial{0, 0});
    killed.wait([] { return true; });
    Descriptor server(::accept(place.listener.get(), nullptr, nullptr)); // the gate's own probe
    server.reset(::accept(place.listener.get(), nullptr, nullptr));
    killed.link->disconnect();
    std::this_thread::sleep_for(50ms);
    Client other{place.name, 'c'};
    other.connect();
    EXPECT_TRUE(other.wait([&] { return other.link->has_answered(); }));
    // The server must not take it for connected until its three hours are over.
    pollfd end{server.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 100), 0);
    EXPECT_EQ(::poll(&end, 1, 20000), 1);
    EXPECT_TRUE(other.wait([&] { return other.link->is_connected(); }));
}

TEST(Gate, ClosesAStreamIfTheServerIsGone)
{
    Place place;
    place.listen();
    Client client{place.name};
    client.connect();
    EXPECT_TRUE(client.wait([&] { return client.link->has_answered(); }));
    place.listener.reset();
    client.channel.send(frames::Dial{0, 0});
    EXPECT_TRUE(client.wait([&] { return client.closed; }));
}

} // namespace
} // namespace gpuq::remote
