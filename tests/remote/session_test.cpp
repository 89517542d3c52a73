// SPDX-License-Identifier: GPL-2.0-or-later
#include "fakes/socket_pair.h"
#include "io/local_socket.h"
#include "remote/client.h"
#include "remote/serve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* k_run_key = "20261120T131158.042Z-0f3a9c1e5b7d2468";

/// Relays between two sockets and closes both after `after` bytes. If `silently`, it keeps them
/// open instead and discards all later data.
class Cutter {
public:
    /// `hold`: how long bytes from `left` after the first k_unheld ones are held back.
    Cutter(Descriptor left, Descriptor right, std::uint64_t after, bool silently,
           std::chrono::milliseconds hold)
        : m_hold(hold)
        , m_thread([this, left = std::move(left), right = std::move(right), after, silently] {
            copy(left.get(), right.get(), after);
            while (silently && !m_end) {
                std::array<pollfd, 2> waits{{{left.get(), POLLIN, 0}, {right.get(), POLLIN, 0}}};
                std::array<char, 8192> buffer;
                ::poll(waits.data(), waits.size(), 20);
                for (const pollfd& each : waits) {
                    (void)!::recv(each.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
                }
            }
        })
    {
    }
    ~Cutter()
    {
        m_end = true;
        m_thread.join();
    }

private:
    void copy(int left, int right, std::uint64_t after)
    {
        std::array<pollfd, 2> waits{{{left, POLLIN, 0}, {right, POLLIN, 0}}};
        std::array<char, 8192> buffer;
        std::size_t unheld = m_hold.count() > 0 ? k_unheld : 0;
        std::chrono::steady_clock::time_point held_until;
        while (!m_end && after > 0) {
            if (::poll(waits.data(), waits.size(), 20) <= 0) {
                continue;
            }
            for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
                if (waits[i].revents == 0 || after == 0) {
                    continue;
                }
                if (i == 0 && unheld == 0 && std::chrono::steady_clock::now() < held_until) {
                    std::this_thread::sleep_for(1ms);
                    continue;
                }
                const auto most = std::min<std::uint64_t>(
                    i == 0 && unheld > 0 ? std::min(unheld, buffer.size()) : buffer.size(), after);
                const ssize_t count = ::read(waits[i].fd, buffer.data(), most);
                if (count <= 0) {
                    return;
                }
                after -= static_cast<std::uint64_t>(count);
                if (i == 0 && unheld > 0) {
                    unheld -= static_cast<std::size_t>(count);
                    held_until = std::chrono::steady_clock::now() + m_hold;
                }
                for (ssize_t done = 0; done < count;) {
                    const ssize_t written =
                        ::send(waits[1 - i].fd, buffer.data() + done,
                               static_cast<std::size_t>(count - done), MSG_NOSIGNAL);
                    if (written <= 0) {
                        return;
                    }
                    done += written;
                }
            }
        }
    }
    static constexpr std::size_t k_unheld = 4096;
    std::atomic<bool> m_end{false};
    std::chrono::milliseconds m_hold;
    std::thread m_thread;
};

/// serve in a child process, behind a connection that is cut repeatedly.
class CutTransport : public Transport {
public:
    using Next = std::function<std::uint64_t()>; ///< number of bytes the next connection carries
    CutTransport(ServeOptions options, Next next)
        : m_options(std::move(options))
        , m_next(std::move(next))
    {
    }
    ~CutTransport() override { end(0); }

    Result<Streams> connect(Attempt, bool, std::string_view first) override
    {
        end(0);
        connections += 1;
        SocketPair client = socket_pair(0), server = socket_pair(0);
        SocketPair errors = socket_pair(0);
        const pid_t child = ::fork();
        if (child == 0) {
            ServeOptions options = m_options;
            options.early = early ? first : "";
            options.in = ::fcntl(server.other.get(), F_DUPFD, 100);
            options.out = ::fcntl(server.other.get(), F_DUPFD, 100);
            for (int each = 3; each < 100; ++each) {
                ::close(each);
            }
            options.in = ::fcntl(options.in, F_DUPFD, 3);
            options.out = ::fcntl(options.out, F_DUPFD, 3);
            ::close(100);
            ::close(101);
            ::_exit(serve(options).has_value() ? 0 : 1);
        }
        m_children.push_back(child);
        server.other.reset();
        m_cutter = std::make_unique<Cutter>(std::move(client.other), std::move(server.one),
                                            m_next(), silently, hold);
        Descriptor second = copy_of(client.one);
        return Streams{link_of(std::move(client.one), std::move(second)), std::move(errors.one)};
    }
    int end(int milliseconds) override
    {
        // A Bye frame may be in transit.
        for (int waited = 0; waited < milliseconds && !m_children.empty(); ++waited) {
            if (::waitpid(m_children.back(), nullptr, WNOHANG) != 0) {
                m_children.pop_back();
            }
            std::this_thread::sleep_for(1ms);
        }
        m_cutter.reset();
        for (const pid_t child : m_children) {
            int status = 0;
            ::waitpid(child, &status, 0);
        }
        m_children.clear();
        return 0;
    }
    Verdict classify(const SshEnd&) const override
    {
        return {Verdict::What::broken, fail(Error::Kind::unreachable, "the connection is cut")};
    }

    int connections = 0;
    bool silently = false;
    bool early = true;                 ///< the first bytes are passed on the command line
    std::chrono::milliseconds hold{0}; ///< until the client's other bytes arrive

private:
    ServeOptions m_options;
    Next m_next;
    std::unique_ptr<Cutter> m_cutter;
    std::vector<pid_t> m_children;
};

/// Runs `body` in a child process. Not in a thread: CutTransport forks, and if another thread
/// allocates memory at that moment, the child may find the heap locked for ever (libasan).
class Beside {
public:
    explicit Beside(const std::function<void()>& body)
        : m_child(::fork())
    {
        if (m_child == 0) {
            body();
            ::_exit(0);
        }
    }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    ~Beside()
    {
        if (m_child > 0) {
            ::kill(m_child, SIGKILL);
            wait();
        }
    }
    void wait() { ::waitpid(std::exchange(m_child, 0), nullptr, 0); }

private:
    pid_t m_child;
};

class NoTerminal : public UserInterface {
public:
    int signals() const override { return coming.get(); }
    std::optional<int> next_signal() override
    {
        unsigned char number = 0;
        return ::read(coming.get(), &number, 1) == 1 ? std::optional<int>(number) : std::nullopt;
    }
    bool resized() override { return false; }
    std::optional<TerminalSize> size() const override { return std::nullopt; }
    void lend_terminal() override {}
    void take_terminal_back() override {}
    void watch(std::string_view) override {}
    void print_message(std::string_view message) override { messages.emplace_back(message); }
    void show_state(std::string_view message) override { states.emplace_back(message); }
    void show_request(std::string_view message) override
    {
        requests.emplace_back(message);
        if (on_request) {
            on_request(message);
        }
    }
    void begin_own_keys() override { own_keys = true; }
    void end_own_keys() override { own_keys = false; }
    void show_ssh(std::string_view) override {}
    std::vector<std::string> messages, states, requests;
    bool own_keys = false;
    std::function<void(std::string_view)> on_request;
    Descriptor coming; ///< nonblocking pipe that delivers signals, one byte each
};

class SessionTest : public testing::Test {
protected:
    SessionTest()
    {
        std::signal(SIGPIPE, SIG_IGN);
        std::string name = "/tmp/gpuq-session-XXXXXX";
        m_directory = ::mkdtemp(name.data());
    }
    ~SessionTest() override { std::filesystem::remove_all(m_directory); }

    ServeOptions options() const { return {"/bin/sh", {"0.1", "login1"}, m_directory, {}, 0, 1}; }

    std::string path(const char* name) const { return m_directory + "/" + name; }
    Descriptor file(const char* name, int flags) const
    {
        return Descriptor(::open(path(name).c_str(), flags | O_CLOEXEC, 0600));
    }
    std::string content(const char* name) const
    {
        std::ifstream in(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    /// A client of `sh -c script` with files in the test directory as input and output.
    Result<int> run(Transport& transport, const std::string& script)
    {
        const Descriptor in = file("in", O_RDONLY | O_CREAT);
        const Descriptor out = file("out", O_WRONLY | O_CREAT | O_TRUNC);
        const Descriptor err = file("err", O_WRONLY | O_CREAT | O_TRUNC);
        ClientOptions options;
        options.host = "login1";
        options.start.arguments = {"-c", script};
        options.start.directory = m_directory;
        options.start.variables = {"TERM=dumb"};
        options.start.patience = patience;
        options.start.no_input = no_input;
        options.start.brief = brief;
        options.reads_input = !no_input;
        options.pace = pace;
        options.in = typed ? typed.get() : in.get();
        options.asks = static_cast<bool>(typed);
        options.out = slow_reader ? slow_reader.get() : out.get();
        options.err = err.get();
        options.random = [] {
            std::array<unsigned char, 8> bytes{};
            std::random_device device;
            for (unsigned char& byte : bytes) {
                byte = static_cast<unsigned char>(device());
            }
            return bytes;
        };
        options.in_its_place = in_its_place;
        options.on_ssh_target = on_ssh_target;
        options.shown_as = shown_as;
        auto status = Client(std::move(options), transport, nobody).run();
        in_offset = ::lseek(in.get(), 0, SEEK_CUR);
        return status;
    }

    /// Complete output of a run as received by a reader that begins after a pause.
    std::string read_late(std::chrono::milliseconds pause, Transport& transport,
                          const std::string& script)
    {
        Pipe pipe = *make_pipe();
        slow_reader = std::move(pipe.write);
        Beside reader([&] {
            slow_reader.reset();
            std::array<char, 4096> buffer;
            std::this_thread::sleep_for(pause);
            std::ofstream got(path("got"), std::ios::binary);
            for (ssize_t size = 0;
                 (size = ::read(pipe.read.get(), buffer.data(), buffer.size())) > 0;) {
                got.write(buffer.data(), size);
            }
        });
        const auto status = run(transport, script);
        slow_reader.reset();
        reader.wait();
        EXPECT_TRUE(status) << status.error().text;
        return content("got");
    }

    bool has_socket() const
    {
        std::ifstream in("/proc/net/unix");
        const std::string sockets(std::istreambuf_iterator<char>(in), {});
        return sockets.find(m_directory) != std::string::npos;
    }

    /// Waits until no socket, and thus no session process, is left.
    bool is_all_gone() const
    {
        for (int i = 0; i < 500; ++i) {
            if (!has_socket()) {
                return true;
            }
            std::this_thread::sleep_for(10ms);
        }
        return false;
    }

    Pace pace{5s, 15s, 5ms};
    std::chrono::seconds patience{60};
    bool no_input = false;
    bool brief = false;
    std::function<Result<frames::Start>(const ClientOptions::Lost&)> in_its_place;
    std::function<void(const frames::SshTarget&)> on_ssh_target;
    std::array<std::function<std::string(std::string_view)>, 2> shown_as;
    NoTerminal nobody;
    Descriptor slow_reader; ///< a pipe that replaces the file `out`
    Descriptor typed;       ///< a pipe that replaces the file `in`, as if it were a terminal
    off_t in_offset = 0;    ///< of the file `in` after run()
    std::string m_directory;
};

CutTransport::Next never()
{
    return [] { return ~std::uint64_t{0}; };
}

/// A transport whose second attempt fails on this machine.
class StumblingTransport : public CutTransport {
public:
    using CutTransport::CutTransport;
    Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override
    {
        if (++attempts == 2) {
            end(0);
            return fail(Error::Kind::io, "no descriptors are left");
        }
        return CutTransport::connect(attempt, alone, first);
    }
    int attempts = 0;
};

TEST_F(SessionTest, AnAttemptToReconnectThatFailsHereIsRepeated)
{
    StumblingTransport transport(options(), [&] {
        return transport.attempts == 1 ? std::uint64_t{30'000} : ~std::uint64_t{0};
    });
    const auto status = run(transport, "seq 1 20000; exit 5");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 5);
    EXPECT_EQ(content("out").size(), 108'894U);
    EXPECT_EQ(transport.attempts, 3);
    EXPECT_THAT(nobody.states, testing::Contains(HasSubstr("reconnecting (2), ")));
    EXPECT_THAT(nobody.states, testing::Contains(HasSubstr(": no descriptors are left")));
    EXPECT_EQ(nobody.states.back(), "");
    EXPECT_TRUE(is_all_gone());
}

TEST_F(SessionTest, AnAttemptThatFailsHereEndsAClientThatWasNeverConnected)
{
    StumblingTransport transport(options(), never());
    transport.attempts = 1;
    const auto status = run(transport, "exit 5");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().text, "no descriptors are left");
}

/// A transport that takes 0.2 s to prepare for each attempt to reconnect.
class SlowTransport : public CutTransport {
public:
    using CutTransport::CutTransport;
    int prepare() override
    {
        ++preparations;
        if (on_prepare) {
            on_prepare();
        }
        itimerspec time{};
        time.it_value.tv_nsec = 200'000'000;
        m_timer.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
        ::timerfd_settime(m_timer.get(), 0, &time, nullptr);
        return m_timer.get();
    }
    Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override
    {
        pollfd wait{m_timer.get(), POLLIN, 0};
        is_early = is_early || (attempt != Attempt::first && ::poll(&wait, 1, 0) != 1);
        return CutTransport::connect(attempt, alone, first);
    }
    int preparations = 0;
    bool is_early = false; ///< connect() was called before that
    std::function<void()> on_prepare;

private:
    Descriptor m_timer;
};

TEST_F(SessionTest, AnAttemptBeginsWhenTheTransportIsPrepared)
{
    SlowTransport transport(options(), [&] {
        return transport.connections < 3 ? std::uint64_t{30'000} : ~std::uint64_t{0};
    });
    const auto status = run(transport, "seq 1 20000; exit 5");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 5);
    EXPECT_EQ(content("out").size(), 108'894U);
    EXPECT_EQ(transport.connections, 3);
    EXPECT_EQ(transport.preparations, 2);
    EXPECT_FALSE(transport.is_early);
}

TEST_F(SessionTest, TheUserMayLeaveWhileTheTransportPrepares)
{
    SocketPair pipe = socket_pair(SOCK_NONBLOCK);
    nobody.coming = std::move(pipe.one);
    SlowTransport transport(options(), [] { return std::uint64_t{30'000}; });
    transport.on_prepare = [&] {
        const unsigned char number = SIGINT;
        (void)!::write(pipe.other.get(), &number, 1);
    };
    const auto status = run(transport, "seq 1 20000; sleep 60");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 130);
    EXPECT_EQ(transport.connections, 1);
}

TEST_F(SessionTest, AVerbRunsThereWithItsStreamsItsFolderAndItsStatus)
{
    std::ofstream(path("in")) << "hello";
    CutTransport transport(options(), never());
    const auto status = run(transport, "cat; pwd; echo $TERM; echo oops >&2; exit 7");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 7);
    EXPECT_EQ(content("out"), "hello" + m_directory + "\ndumb\n");
    EXPECT_EQ(content("err"), "oops\n");
    EXPECT_TRUE(is_all_gone());
}

TEST_F(SessionTest, AVerbThatDiesOfASignalHasAShellsStatus)
{
    CutTransport transport(options(), never());
    const auto status = run(transport, "kill -TERM $$");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 128 + SIGTERM);
}

TEST_F(SessionTest, NoInputHereIsNoInputThere)
{
    no_input = true;
    CutTransport transport(options(), never());
    const auto status = run(transport, "readlink /proc/self/fd/0; cat");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(content("out"), "/dev/null\n");
}

TEST_F(SessionTest, InputThatNothingReadCanBeReadAgain)
{
    struct Case {
        const char* script;
        std::size_t size;
        off_t offset;
    };
    for (const auto& [script, size, offset] :
         {Case{"cat", 10, 10}, Case{"dd bs=4 count=1 2>&-", 10, 4}, Case{"sleep 0.2; exit", 10, 0},
          Case{"dd bs=4 count=1 2>&-; sleep 0.2", 1 << 20, 4}, Case{"exit 3", 1 << 20, 0},
          Case{"exec 0<&-; sleep 0.2", 1 << 20, 0}, Case{"cat; echo 'LEFT 3' >&3", 10, 7},
          Case{"cat; echo 'LEFT 30' >&3", 10, 0}}) {
        std::ofstream(path("in")) << std::string(size, 'x');
        CutTransport transport(options(), never());
        const auto status = run(transport, script);
        ASSERT_TRUE(status) << status.error().text;
        EXPECT_EQ(in_offset, offset) << script << " " << size;
    }
    std::ofstream(path("in")) << std::string(1 << 20, 'x');
    CutTransport late(options(), never()); // the program ends before any input arrives
    late.hold = 1s;
    ASSERT_TRUE(run(late, "sleep 0.1; exit 3"));
    EXPECT_EQ(in_offset, 0);
    std::uint64_t budget = 1 << 16;
    CutTransport transport(options(), [&budget] { return budget *= 2; });
    const auto status = run(transport, "dd bs=300000 iflag=fullblock count=1 2>&-");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(in_offset, 300000);
}

TEST_F(SessionTest, WhatIsShownOfAStreamMayBeLongerOrShorterThanItsBytes)
{
    for (const std::size_t each : {std::size_t{0}, std::size_t{3}}) {
        shown_as[0] = [each](std::string_view bytes) {
            return bytes.empty() ? std::string("end") : std::string(bytes.size() * each, 'x');
        };
        std::mt19937_64 random(3);
        int drops = 0;
        CutTransport transport(options(), [&]() -> std::uint64_t {
            return ++drops > 20 ? ~std::uint64_t{0} : random() % 30'000;
        });
        const auto status = run(transport, "seq 1 20000; echo err >&2; exit 5");
        ASSERT_TRUE(status) << status.error().text;
        EXPECT_EQ(*status, 5);
        EXPECT_EQ(content("out"), std::string(108'894 * each, 'x') + "end");
        EXPECT_EQ(content("err"), "err\n");
    }
}

TEST_F(SessionTest, ABriefVerbIsOverWithItsEndAndComesOnceOverDrops)
{
    brief = true;
    for (const std::uint64_t first : {~std::uint64_t{0}, std::uint64_t{3000}}) {
        int connections = 0;
        CutTransport transport(options(),
                               [&] { return ++connections == 1 ? first : ~std::uint64_t{0}; });
        const auto status = run(transport, "echo x >> begun; seq 1 2000; exit 5");
        ASSERT_TRUE(status) << status.error().text;
        EXPECT_EQ(*status, 5);
        EXPECT_THAT(content("out"), testing::EndsWith("\n1999\n2000\n"));
        EXPECT_EQ(content("out").size(), 8893U);
        EXPECT_EQ(content("begun"), "x\n");
        EXPECT_TRUE(is_all_gone());
        std::filesystem::remove(path("begun"));
    }
}

TEST_F(SessionTest, AFolderThatIsNotThereIsSaid)
{
    CutTransport transport(options(), never());
    ClientOptions client;
    client.host = "login1";
    client.start.directory = "/nonexistent/folder";
    client.random = [] { return std::array<unsigned char, 8>{1, 2, 3}; };
    client.reads_input = false;
    const auto status = Client(std::move(client), transport, nobody).run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, Error::Kind::missing);
    EXPECT_THAT(status.error().text, HasSubstr("login1: /nonexistent/folder: No such file"));
    EXPECT_TRUE(is_all_gone());
}

TEST_F(SessionTest, NoByteIsLostOrDoubledEitherWayOverTwoHundredDrops)
{
    std::mt19937_64 random(11);
    std::string bytes(8 << 20, '\0');
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        const std::uint64_t word = random();
        std::memcpy(bytes.data() + i, &word, sizeof word);
    }
    std::ofstream(path("in"), std::ios::binary) << bytes;
    int drops = 0;
    CutTransport transport(options(), [&]() -> std::uint64_t {
        return ++drops > 200 ? ~std::uint64_t{0} : random() % 160'000;
    });
    // Both streams, with input and output at the same time.
    const auto status = run(transport, "tee /dev/stderr; exit 3");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 3);
    EXPECT_GE(transport.connections, 150);
    EXPECT_TRUE(content("out") == bytes);
    EXPECT_TRUE(content("err") == bytes);
    EXPECT_TRUE(is_all_gone());
    EXPECT_THAT(nobody.states, testing::Contains(HasSubstr("reconnecting (1), shown up to byte ")));
}

TEST_F(SessionTest, NoByteIsLostWhereTheFirstOnesComeOnlyOnce)
{
    std::string bytes;
    for (int i = 0; i < 200'000; ++i) {
        bytes += std::to_string(i) + "\n";
    }
    std::ofstream(path("in"), std::ios::binary) << bytes;
    std::mt19937_64 random(12);
    int drops = 0;
    CutTransport transport(options(), [&]() -> std::uint64_t {
        return ++drops > 50 ? ~std::uint64_t{0} : random() % 160'000;
    });
    transport.early = false; // as with a forced command on the host
    const auto status = run(transport, "cat");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_TRUE(content("out") == bytes);
}

TEST_F(SessionTest, NoSignalIsLostOrDoubledOverDrops)
{
    constexpr int k_count = 60;
    for (const bool silently : {false, true}) {
        SCOPED_TRACE(silently);
        std::mt19937_64 random(5);
        CutTransport transport(options(), [&] { return 300 + random() % 400; });
        transport.silently = silently;
        pace.beat = 50ms;
        pace.silence = 200ms;
        SocketPair pipe = socket_pair(0);
        ::fcntl(pipe.one.get(), F_SETFL, O_NONBLOCK);
        nobody.coming = std::move(pipe.one);
        // Waits until the previous signal has been counted: two that arrive together are merged.
        const Beside sender([&] {
            for (int sent = 0; sent < k_count;) {
                const std::string shown = content("out");
                if (std::count(shown.begin(), shown.end(), '\n') > sent) {
                    const unsigned char number = SIGUSR1;
                    (void)!::write(pipe.other.get(), &number, 1);
                    ++sent;
                }
                std::this_thread::sleep_for(1ms);
            }
        });
        const auto status =
            run(transport,
                // Not a trap of a shell: dash sometimes leaves a loop when one interrupts it.
                fmt::format("exec python3 -c 'import os, signal, time\n"
                            "n = 0\n"
                            "def count(*_):\n"
                            "    global n\n"
                            "    n += 1\n"
                            "    os.write(1, b\"%d\\n\" % n)\n"
                            "signal.signal(signal.SIGUSR1, count)\n"
                            "os.write(1, b\"0\\n\")\n"
                            "while n < {}:\n"
                            "    time.sleep(0.02)\n"
                            "os._exit(9)'",
                            k_count));
        ASSERT_TRUE(status) << status.error().text;
        EXPECT_EQ(*status, 9);
        std::string expected;
        for (int i = 0; i <= k_count; ++i) {
            expected += fmt::format("{}\n", i);
        }
        EXPECT_EQ(content("out"), expected);
        EXPECT_GT(transport.connections, 5);
        std::filesystem::remove(path("out"));
    }
}

/// A host that requires an answer at each connection but the first: it accepts `right`, after
/// `questions` questions.
class AskingTransport : public CutTransport {
public:
    using CutTransport::CutTransport;
    ~AskingTransport() override { end(0); }

    Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override
    {
        attempts.push_back(attempt);
        answered = 0;
        is_open = attempt == Attempt::first || lets_in;
        if (is_open) {
            return CutTransport::connect(attempt, alone, first);
        }
        SocketPair pair = socket_pair(0);
        SocketPair errors = socket_pair(0);
        far = std::move(pair.other);
        bell = *make_pipe();
        if (attempt == Attempt::again) {
            far.reset();
        } else {
            (void)!::write(bell.write.get(), "x", 1);
        }
        Descriptor second = copy_of(pair.one);
        return Streams{link_of(std::move(pair.one), std::move(second)), std::move(errors.one)};
    }
    int end(int milliseconds) override
    {
        far.reset();
        bell = {};
        return CutTransport::end(milliseconds);
    }
    pollfd questions() const override { return {bell.read.get(), POLLIN, 0}; }
    std::optional<Question> next_question() override
    {
        char byte = 0;
        (void)!::read(bell.read.get(), &byte, 1);
        return Question{question, true};
    }
    bool is_asked() const override { return true; }
    void answer(std::string_view text) override
    {
        answers.emplace_back(text);
        ++answered;
        if (answered < questions_of_each) {
            (void)!::write(bell.write.get(), "x", 1);
        } else {
            lets_in = text == "right";
            far.reset();
        }
    }
    LoginState login_state() override // first read when the host has refused
    {
        const LoginState state{key};
        if (std::exchange(is_key_coming, false)) {
            lets_in = true;
            key = 7;
        }
        return state;
    }
    Verdict classify(const SshEnd&) const override
    {
        return {is_open   ? Verdict::What::broken
                : lets_in ? Verdict::What::broken
                          : Verdict::What::needs_user,
                fail(Error::Kind::denied, "it wants an answer")};
    }

    std::vector<Attempt> attempts;
    std::vector<std::string> answers;
    std::string question = "Password: ";
    int questions_of_each = 1;
    bool lets_in = false;
    std::uint64_t key = 0;
    bool is_key_coming = false; ///< it then lets in

private:
    Descriptor far;
    Pipe bell;
    bool is_open = true;
    int answered = 0;
};

CutTransport::Next cut_once()
{
    return [connections = 0]() mutable -> std::uint64_t {
        return ++connections == 1 ? 3000 : ~std::uint64_t{0};
    };
}

TEST_F(SessionTest, WithoutATerminalAHostThatAsksIsWaitedForUntilAKeyLetsIn)
{
    AskingTransport transport(options(), cut_once());
    transport.is_key_coming = true;
    const auto status = run(transport, "seq 1 10000; exit 5");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 5);
    EXPECT_EQ(content("out").size(), 48894U);
    EXPECT_EQ(transport.attempts, (std::vector{Attempt::first, Attempt::again, Attempt::again}));
    EXPECT_THAT(nobody.messages,
                testing::ElementsAre(HasSubstr("login1 needs an interactive login")));
    EXPECT_FALSE(nobody.own_keys);
}

TEST_F(SessionTest, WithoutATerminalAHostThatAsksIsGivenUpAfterThePatience)
{
    patience = 1s;
    AskingTransport transport(options(), cut_once());
    const auto status = run(transport, "seq 1 10000; exit 5");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, Error::Kind::denied);
    EXPECT_THAT(status.error().text,
                HasSubstr("it wants an answer; no login succeeded within 1 s"));
    EXPECT_EQ(transport.attempts, (std::vector{Attempt::first, Attempt::again}));
    EXPECT_TRUE(is_all_gone());
}

TEST_F(SessionTest, ALoginThatCanNotBeAskedForHereIsTriedAgainOnEnter)
{
    struct Stumbling : AskingTransport {
        using AskingTransport::AskingTransport;
        Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override
        {
            if (attempt == Attempt::asked && !std::exchange(has_stumbled, true)) {
                attempts.push_back(attempt);
                end(0);
                return fail(Error::Kind::io, "/tmp: no space left");
            }
            return AskingTransport::connect(attempt, alone, first);
        }
        bool has_stumbled = false;
    };
    Pipe keys = *make_pipe();
    typed = std::move(keys.read);
    nobody.on_request = [&](std::string_view request) {
        const std::string_view typed_now =
            request.find("Enter tries") != std::string_view::npos ? "\r"
            : request.find(" asks: ") != std::string_view::npos   ? "right\r"
                                                                  : "";
        (void)!::write(keys.write.get(), typed_now.data(), typed_now.size());
    };
    Stumbling transport(options(), cut_once());
    transport.question = "\x1b]0;owned\x07"
                         "Code:\n ";
    const auto status = run(transport, "seq 1 10000; exit 5");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 5);
    EXPECT_EQ(content("out").size(), 48894U);
    EXPECT_THAT(nobody.requests, testing::Contains("login1 asks: ^[]0;owned^GCode:"));
    EXPECT_EQ(transport.attempts, (std::vector{Attempt::first, Attempt::again, Attempt::asked,
                                               Attempt::asked, Attempt::again}));
    EXPECT_EQ(transport.answers, std::vector<std::string>{"right"});
    EXPECT_THAT(nobody.requests,
                testing::Contains("login1 could not be asked (/tmp: no space left): Enter tries "
                                  "again, Ctrl-C leaves"));
}

TEST_F(SessionTest, AFirstConnectionThatNobodyAnswersHasAnEnd)
{
    CutTransport transport(options(), [] { return std::uint64_t{0}; });
    transport.silently = true;
    pace.first = 300ms;
    const auto begun = std::chrono::steady_clock::now();
    const auto status = run(transport, "true");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, Error::Kind::unreachable);
    EXPECT_THAT(status.error().text, HasSubstr("login1: no answer within"));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST_F(SessionTest, AHostThatIsSilentAfterItsFirstFrameIsGivenUp)
{
    pace = {50ms, 200ms, 5ms};
    in_its_place = [](const ClientOptions::Lost&) { // Start has not arrived
        frames::Start start;
        start.arguments = {"-c", "seq 1 10"};
        return Result<frames::Start>(start);
    };
    for (const bool silently : {true, false}) {
        CutTransport transport(options(), [] { return std::uint64_t{200}; }); // Open and Hello
        transport.silently = silently;
        transport.early = false;
        const auto status = run(transport, "seq 1 10");
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().kind, Error::Kind::unreachable);
        EXPECT_EQ(status.error().text,
                  silently ? "login1: gpuq there does not respond" : "the connection is cut");
        EXPECT_GE(transport.connections, 10);
    }
}

TEST_F(SessionTest, AHostThatTakesNoInputIsGivenUpWithoutAUser)
{
    pace = {50ms, 400ms, 5ms};
    std::ofstream(path("in")) << std::string(64 << 10, 'x');
    CutTransport transport(options(), [] { return std::uint64_t{10'000}; }); // less than the frame
    transport.silently = true;
    transport.hold = 300ms;
    const auto status = run(transport, "echo ready; cat >/dev/null");
    ASSERT_FALSE(status);
    EXPECT_EQ(content("out"), "ready\n");
    EXPECT_EQ(status.error().kind, Error::Kind::unreachable);
    EXPECT_EQ(status.error().text, "login1: gpuq there does not respond");
    EXPECT_GE(transport.connections, 10);
}

TEST_F(SessionTest, AnotherWayIsTakenAtOnceIfTheFirstOneFails)
{
    struct TwoWays : CutTransport {
        using CutTransport::CutTransport;
        Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override
        {
            attempts.push_back(attempt);
            if (attempts.size() > 1) {
                return CutTransport::connect(attempt, alone, first);
            }
            SocketPair pair = socket_pair(0);
            Descriptor second = copy_of(pair.one);
            return Streams{link_of(std::move(pair.one), std::move(second)), socket_pair(0).one};
        }
        Verdict classify(const SshEnd&) const override
        {
            return {Verdict::What::other_way, fail(Error::Kind::denied, "refused")};
        }
        std::vector<Attempt> attempts;
    };
    TwoWays transport(options(), never());
    const auto status = run(transport, "echo once >> runs; exit 4");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 4);
    EXPECT_EQ(transport.attempts, (std::vector{Attempt::first, Attempt::first}));
    EXPECT_EQ(content("runs"), "once\n");
}

TEST_F(SessionTest, AVerbThatHasEndedKeepsItsOutputForWhoComesBack)
{
    int connections = 0;
    CutTransport transport(options(), [&]() -> std::uint64_t {
        return ++connections == 1 ? 3000 : ~std::uint64_t{0};
    });
    const auto status = run(transport, "seq 1 10000; exit 5");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 5);
    EXPECT_THAT(content("out"), testing::EndsWith("\n9999\n10000\n"));
    EXPECT_EQ(content("out").size(), 48894U);
    EXPECT_EQ(transport.connections, 2);
}

TEST_F(SessionTest, WhatALoginIsGoodForIsUsedByThoseThatComeBack)
{
    ServeOptions serving = options();
    serving.came_back = [this] { std::ofstream(path("came"), std::ios::app) << "again\n"; };
    int connections = 0;
    CutTransport transport(
        serving, [&]() -> std::uint64_t { return ++connections == 1 ? 3000 : ~std::uint64_t{0}; });
    const auto status = run(transport, "seq 1 10000; while [ ! -e came ]; do sleep 0.01; done");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(transport.connections, 2);
    EXPECT_EQ(content("came"), "again\n");
}

TEST_F(SessionTest, ASessionThatIsGoneIsNotBegunTwice)
{
    int connections = 0;
    CutTransport transport(options(), [&]() -> std::uint64_t {
        return ++connections == 1 ? 4000 : ~std::uint64_t{0};
    });
    // The verb kills the process that holds it, as a reboot would.
    const auto status =
        run(transport, "echo once >> runs; seq 1 1000; sleep 0.3; kill -9 $PPID; sleep 60");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, Error::Kind::lost);
    EXPECT_EQ(content("runs"), "once\n");
}

TEST_F(SessionTest, WhatIsToBeStartedInItsPlaceIs)
{
    std::optional<ClientOptions::Lost> lost;
    in_its_place = [&](const ClientOptions::Lost& what) -> Result<frames::Start> {
        lost = what;
        frames::Start start;
        start.arguments = {"-c", "echo again"};
        return start;
    };
    CutTransport transport(options(), never());
    const auto status = run(transport, "echo '20261120T131158.042Z-0f3a9c1e5b7d2468 42 1 0 0' "
                                       ">&3; echo once; sleep 0.3; kill -9 $PPID; sleep 60");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(content("out"), "once\nagain\n");
    ASSERT_TRUE(lost && lost->following);
    EXPECT_EQ(lost->following->job, 42U);
    EXPECT_EQ(lost->out, 5U);
}

TEST_F(SessionTest, ASignalThatASessionHasNotTakenIsForWhatIsStartedInItsPlace)
{
    in_its_place = [](const ClientOptions::Lost&) -> Result<frames::Start> {
        frames::Start start;
        start.arguments = {"-c", "exec sleep 20"};
        return start;
    };
    SocketPair pipe = socket_pair(0);
    ::fcntl(pipe.one.get(), F_SETFL, O_NONBLOCK);
    nobody.coming = std::move(pipe.one);
    const Beside sender([&] {
        while (content("stopped").empty()) {
            std::this_thread::sleep_for(1ms);
        }
        std::this_thread::sleep_for(50ms); // a stop takes effect shortly afterwards
        const unsigned char number = SIGUSR1;
        (void)!::write(pipe.other.get(), &number, 1);
    });
    CutTransport transport(options(), never());
    const auto status =
        run(transport, "echo once; sleep 0.05; kill -STOP $PPID; echo >stopped; sleep 0.5; "
                       "kill -9 $PPID; sleep 60");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(*status, 128 + SIGUSR1);
}

TEST_F(SessionTest, GpuqsOwnWordsAreNoPartOfWhatTheRunHasPrinted)
{
    std::optional<ClientOptions::Lost> lost;
    in_its_place = [&](const ClientOptions::Lost& what) -> Result<frames::Start> {
        lost = what;
        frames::Start start;
        start.arguments = {"-c", "exit"};
        return start;
    };
    CutTransport transport(options(), never());
    const auto status =
        run(transport, "echo 'OWN 6' >&3; echo words >&2; "
                       "echo '20261120T131158.042Z-0f3a9c1e5b7d2468 42 1 0 100' >&3; echo run >&2; "
                       "echo 'OWN 5' >&3; echo more >&2; sleep 0.3; kill -9 $PPID; sleep 60");
    ASSERT_TRUE(status) << status.error().text;
    ASSERT_TRUE(lost && lost->following);
    EXPECT_EQ(lost->err, 15U);
    EXPECT_EQ(lost->following->err + lost->err, 104U); // after `run`
}

TEST_F(SessionTest, ARunIsDescribedToAClientThatHasAsked)
{
    CutTransport transport(options(), never());
    std::optional<frames::SshTarget> target;
    on_ssh_target = [&](const auto& each) { target = each; };
    const auto status = run(transport, fmt::format("echo 'SSH {} 7 ada' >&3; "
                                                   "echo 'SSH {} 8 a b' >&3; exit 0",
                                                   k_run_key, k_run_key));
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_EQ(target, (frames::SshTarget{k_run_key, 7, "ada"}));
}

TEST_F(SessionTest, AVerbHearsUpToWhichMarkItsPersonHasBeenShown)
{
    CutTransport transport(options(), never());
    const auto status = run(transport, "seq 1 1000; echo MARK >&3; read n <&3; echo mark $n; "
                                       "echo words >&2; echo MARK >&3; read n <&3; echo mark $n");
    ASSERT_TRUE(status) << status.error().text;
    EXPECT_THAT(content("out"), testing::EndsWith("1000\nmark 1\nmark 2\n"));
}

TEST_F(SessionTest, AMarkBehindWhatNobodyHasReadIsNotReached)
{
    CutTransport transport(options(), never());
    const std::string got =
        read_late(1500ms, transport,
                  "seq 1 50000; echo MARK >&3; "
                  "timeout 0.7 head -c 1 <&3; echo early $?; read n <&3; echo mark $n");
    EXPECT_THAT(got, testing::EndsWith("50000\nearly 124\nmark 1\n"));
}

TEST_F(SessionTest, WhatWaitsForASlowReaderComesOnceWhenTheSessionIsGone)
{
    in_its_place = [](const ClientOptions::Lost& lost) -> Result<frames::Start> {
        frames::Start start;
        start.arguments = {"-c", "seq 1 50000 | tail -c +" + std::to_string(lost.out + 1)};
        return start;
    };
    CutTransport transport(options(), never());
    const std::string got = // by then the session is gone
        read_late(1s, transport, "seq 1 50000; sleep 0.3; kill -9 $PPID; sleep 60");
    std::string all;
    for (int i = 1; i <= 50000; ++i) {
        all += std::to_string(i) + "\n";
    }
    EXPECT_TRUE(got == all) << got.size() << " of " << all.size();
}

TEST_F(SessionTest, AVerbIsHungUpWhenNobodyComesBack)
{
    patience = 1s;
    const pid_t client = ::fork();
    if (client == 0) {
        CutTransport transport(options(), never());
        (void)run(transport, "trap 'echo hup > hup; exit' HUP; echo > begun; sleep 60 & wait");
        ::_exit(0);
    }
    while (!std::filesystem::exists(path("begun"))) {
        std::this_thread::sleep_for(10ms);
    }
    ::kill(client, SIGKILL);
    ::waitpid(client, nullptr, 0);
    EXPECT_TRUE(is_all_gone());
    EXPECT_EQ(content("hup"), "hup\n");
}

TEST_F(SessionTest, AServerThatSpeaksNonsenseIsLeftWithAClearError)
{
    struct Nonsense : Transport {
        std::string bytes;
        Result<Streams> connect(Attempt, bool, std::string_view) override
        {
            SocketPair pair = socket_pair(0);
            EXPECT_GT(::write(pair.other.get(), bytes.data(), bytes.size()), 0);
            far = std::move(pair.other);
            Descriptor second = copy_of(pair.one);
            return Streams{link_of(std::move(pair.one), std::move(second)), socket_pair(0).one};
        }
        int end(int) override { return 0; }
        Verdict classify(const SshEnd&) const override { return {}; }
        Descriptor far;
    };
    const std::string hello = std::string(frames::k_marker) +
                              frames::encode(frames::Hello{1, "0", "x", false, 0, 1 << 18});
    const std::vector<std::pair<std::string, std::string>> cases = {
        {std::string(60'000, 'x') + std::string(frames::k_marker) +
             std::string("\x41\xff\xff\xff\x7f", 5),
         "a frame is longer"},
        {std::string(frames::k_marker) + frames::encode(frames::Beat{}), "expected Hello"},
        {hello + frames::encode(frames::Output{Stream::out, 5, "x"}), "unexpected offset"},
        {hello + frames::encode(frames::Failure{Error::Kind::denied, std::string(60'000, 'x')}),
         "xxxx"},
        {hello + frames::encode(frames::Exit{0, 10, 0}), "before all output"},
        {hello + frames::encode(frames::InputRead{1}), "read input that was not sent"},
        {hello + frames::encode(frames::InputTaken{10, 0}), "not sent"},
        {hello + frames::encode(frames::Failure{Error::Kind::denied, "\x1b[2Jno"}), "^[[2Jno"},
        {hello + frames::encode(frames::Start{}), "other side"},
        {hello + frames::encode(frames::Following{"-oProxyCommand=id", 1, 1, 0, 0}),
         "invalid run key"},
        {hello + frames::encode(frames::SshTarget{k_run_key, 1, "ada"}), "unexpected ssh host"},
        {hello + frames::encode(frames::SshTarget{k_run_key, 1, "a\nb"}),
         "invalid run key or user"},
        {hello + frames::encode(frames::Exit{256, 0, 0}), "invalid exit status"},
        {hello + frames::encode(frames::Beat{1}), "unexpected heartbeat"},
        {hello + frames::encode(frames::StreamBytes{0, "x"}), "unexpected connection"},
        {hello + frames::encode(frames::StreamClosed{7, "x"}), "unexpected connection"},
        {std::string(frames::k_marker) +
             frames::encode(frames::Hello{1, "0", "\x1b]0;x\a", false, 0, 1 << 18}),
         "invalid names"},
    };
    for (const auto& [bytes, message] : cases) {
        Nonsense transport;
        transport.bytes = bytes;
        ClientOptions client;
        client.host = "login1";
        client.random = [] { return std::array<unsigned char, 8>{1, 2, 3}; };
        client.reads_input = false;
        const auto status = Client(std::move(client), transport, nobody).run();
        ASSERT_FALSE(status) << message;
        EXPECT_THAT(status.error().text, HasSubstr(message));
        EXPECT_LE(status.error().text.size(), 400U);
    }
}

/// A process that serves, and its client, which sends `bytes`.
class Served {
public:
    Served(const ServeOptions& options, std::string bytes)
        : m_bytes(std::move(bytes))
    {
        SocketPair pair = socket_pair(0);
        m_child = ::fork();
        if (m_child == 0) {
            ServeOptions own = options;
            own.in = ::fcntl(pair.other.get(), F_DUPFD, 50);
            own.out = ::fcntl(pair.other.get(), F_DUPFD, 50);
            pair.one.reset();
            pair.other.reset();
            ::_exit(serve(own).has_value() ? 0 : 1);
        }
        m_client = std::move(pair.one);
        set_nonblocking(m_client.get());
    }
    ~Served()
    {
        m_client.reset();
        ::waitpid(m_child, nullptr, 0);
    }
    Served(const Served&) = delete;
    Served& operator=(const Served&) = delete;

    /// All of the response up to `until` or the end of the connection.
    const std::string& response(const std::string& until)
    {
        std::array<char, 65536> buffer;
        for (int i = 0; i < 1000 && m_response.find(until) == std::string::npos; ++i) {
            const bool sends = m_sent < m_bytes.size();
            pollfd wait{m_client.get(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0};
            if (::poll(&wait, 1, 20) <= 0) {
                continue;
            }
            if ((wait.revents & POLLOUT) != 0 && sends) {
                const ssize_t count = ::send(m_client.get(), m_bytes.data() + m_sent,
                                             m_bytes.size() - m_sent, MSG_NOSIGNAL);
                m_sent = count < 0 ? m_bytes.size() : m_sent + static_cast<std::size_t>(count);
            }
            const ssize_t count = ::read(m_client.get(), buffer.data(), buffer.size());
            if (count > 0) {
                m_response.append(buffer.data(), static_cast<std::size_t>(count));
            } else if (count == 0 || errno != EAGAIN) {
                break;
            }
        }
        return m_response;
    }

private:
    std::string m_bytes;
    std::size_t m_sent = 0;
    pid_t m_child = -1;
    Descriptor m_client;
    std::string m_response;
};

/// Sends `bytes` to serve and returns its response up to `until` or the end of the connection.
std::string answer(const ServeOptions& options, const std::string& bytes, const std::string& until)
{
    return Served(options, bytes).response(until);
}

TEST_F(SessionTest, AClientThatSpeaksNonsenseIsLeftAndNothingStays)
{
    frames::Open open;
    open.session = std::string(32, 'a');
    frames::Start start;
    start.arguments = {"-c", "cat; sleep 60"};
    start.patience = 0s;
    const std::string begun = frames::encode(open) + frames::encode(start);
    frames::Start bad = start;
    bad.forwards = {"--config"};
    frames::Open elsewhere = open;
    elsewhere.session = "../../../../../../tmp/somebody-else";
    frames::Open newer = open;
    newer.version = newer.oldest = 9;
    const std::vector<std::pair<std::string, std::string>> cases = {
        {std::string("\x04\xff\xff\xff\x7f", 5), "a frame is longer"},
        {frames::encode(frames::Beat{}), "expected Open"},
        {frames::encode(elsewhere), "expected Open"},
        {frames::encode(newer), "is too old"},
        {begun + frames::encode(open), "duplicate Open"},
        {begun + frames::encode(frames::Input{5, "x"}), "unexpected offset"},
        {begun + frames::encode(frames::Input{0, std::string(frames::k_input_room + 1, 'x')}),
         "input exceeds"},
        {begun + frames::encode(frames::Taken{1ULL << 60, 0}), "not sent"},
        {begun + std::string("\x04\xff\xff\xff\x7f", 5), "a frame is longer"},
        {begun + frames::encode(frames::Dial{1, 0}), "no run to connect to"},
        {begun + frames::encode(frames::Exit{}), "other side"},
        {frames::encode(open) + frames::encode(bad), "invalid --forward destination"},
    };
    for (const auto& [bytes, message] : cases) {
        EXPECT_THAT(answer(options(), bytes, message), HasSubstr(message));
        EXPECT_TRUE(is_all_gone()) << message;
    }
}

TEST_F(SessionTest, AConnectionThatComesLateLeavesTheNewerOneAlone)
{
    frames::Open open;
    open.session = std::string(32, 'c');
    open.connection = 2;
    frames::Start start;
    start.arguments = {"-c", "echo begun; while [ ! -e enough ]; do sleep 0.01; done; echo newer"};
    start.directory = m_directory;
    Served newer(options(), frames::encode(open) + frames::encode(start));
    EXPECT_THAT(newer.response("begun"), HasSubstr("begun"));
    frames::Open late = open;
    late.connection = 1;
    EXPECT_THAT(answer(options(), frames::encode(late), "no such text"), frames::k_marker);
    std::ofstream(path("enough")) << "x";
    EXPECT_THAT(newer.response("newer"), HasSubstr("newer"));
}

/// Another user may fill the backlog of the session's socket: its name is not secret.
TEST_F(SessionTest, ASessionThatDoesNotAcceptIsNotTakenForGone)
{
    frames::Open open;
    open.session = std::string(32, 'd');
    const std::string name = options().place + "/" + open.session;
    const auto listener = listen_at(name, 0);
    ASSERT_TRUE(listener);
    std::vector<Descriptor> waiting;
    while (auto socket = connect_to(name)) {
        waiting.push_back(*std::move(socket));
    }
    EXPECT_THAT(answer(options(), frames::encode(open), "no such text"), frames::k_marker);
}

/// The verb has ended, and so has its connection, but its reader pauses.
TEST_F(SessionTest, TheRestOfABriefVerbIsShownWithoutAnotherConnection)
{
    brief = true;
    pace.silence = 300ms;
    CutTransport transport(options(), never());
    const std::string got = read_late(1500ms, transport, "echo x >> begun; seq 1 50000");
    EXPECT_EQ(got.size(), 288'894U);
    EXPECT_EQ(transport.connections, 1);
    EXPECT_EQ(content("begun"), "x\n");
}

TEST_F(SessionTest, ABriefVerbWhoseClientHasGoneIsHungUp)
{
    frames::Open open;
    open.session = std::string(32, 'b');
    frames::Start start;
    start.arguments = {"-c", "trap 'echo hup > hup; exit' HUP; echo begun; sleep 60 & wait"};
    start.directory = m_directory;
    start.patience = 3h;
    start.brief = true;
    (void)answer(options(), frames::encode(open) + frames::encode(start), "begun");
    EXPECT_TRUE(is_all_gone());
    EXPECT_EQ(content("hup"), "hup\n");
}

TEST_F(SessionTest, AClientThatSendsAndNeverReadsIsDropped)
{
    SocketPair pair = socket_pair(0);
    const pid_t child = ::fork();
    if (child == 0) {
        ServeOptions there = options();
        there.in = ::fcntl(pair.other.get(), F_DUPFD_CLOEXEC, 3);
        there.out = ::fcntl(pair.other.get(), F_DUPFD_CLOEXEC, 3);
        pair.one.reset();
        pair.other.reset();
        ::_exit(serve(there).has_value() ? 0 : 1);
    }
    pair.other.reset();
    frames::Open open;
    open.session = std::string(32, 'a');
    frames::Start start;
    start.arguments = {"-c", "sleep 60"};
    start.patience = 0s;
    const auto send = [&](const std::string& bytes) {
        return ::send(pair.one.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
    };
    ASSERT_TRUE(send(frames::encode(open) + frames::encode(start)));
    std::string beats; // each is answered
    for (int i = 0; i < 5000; ++i) {
        beats += frames::encode(frames::Beat{});
    }
    constexpr std::size_t k_all = 16 << 20;
    std::size_t sent = 0;
    while (sent < k_all && send(beats)) {
        sent += beats.size();
    }
    EXPECT_LT(sent, k_all);
    pair.one.reset();
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_all_gone());
}

} // namespace
} // namespace gpuq::remote
