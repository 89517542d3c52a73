// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/relay.h"

#include "core/exit_status.h"
#include "ports/cluster.h"
#include "supervisor/stage.h"

namespace gpuq::supervisor {
namespace {

/// A process that runs `task` with pipes as standard streams.
struct Side {
    pid_t pid = -1;
    Descriptor to, from;

    Side(Stage& stage, const std::function<int(Services&, const Options&)>& task)
    {
        Pipe in = make_pipe().value();
        Pipe out = make_pipe().value();
        pid = ::fork();
        if (pid == 0) {
            ::dup2(in.read.get(), 0);
            ::dup2(out.write.get(), 1);
            for (int fd = 3; fd < 256; ++fd) {
                ::close(fd);
            }
            RealClock clock;
            Services services{clock,
                              [&]() -> Result<std::unique_ptr<Cluster>> {
                                  return std::unique_ptr<Cluster>(
                                      std::make_unique<SlurmModel>(stage.root() / "slurm"));
                              },
                              [](const Request& request) { return request.program; },
                              [] { return 30s; }};
            ::_exit(task(services, stage.options));
        }
        to = std::move(in.write);
        from = std::move(out.read);
    }
    ~Side()
    {
        if (pid > 0) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    int wait()
    {
        int status = 0;
        EXPECT_TRUE(eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
        pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
};

int as_relay(Services&, const Options& options)
{
    return relay(options);
}

int as_guard(Services& services, const Options& options)
{
    return guard(services, options);
}

TEST(Relay, CarriesBothDirectionsAndEndsWithTheSupervisor)
{
    Stage stage = Stage::shell("cat");
    stage.run.request.input = Input::pipe;
    Client first = stage.begin();
    ASSERT_TRUE(first.reads_until([&] { return first.started.has_value(); }));
    Side side(stage, as_relay);
    Client client(std::move(side.from), std::move(side.to));
    client.send(wire::Attach{wire::k_version, wire::Role::owner, 0, 0});
    std::string wanted;
    for (int i = 0; i < 20; ++i) {
        const std::string piece(50'000, static_cast<char>('a' + i));
        ASSERT_TRUE(client.reads_until([&] {
            return client.taken &&
                   client.taken->offset + client.taken->room >= wanted.size() + piece.size();
        }));
        client.send(wire::Stdin{wanted.size(), piece});
        wanted += piece;
    }
    client.send(wire::StdinEnd{wanted.size()});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.out == wanted);
    client.close_input();
    EXPECT_EQ(side.wait(), 0);
}

TEST(Relay, StandsInNobodysWay)
{
    Stage stage = Stage::shell("read line; echo $line; read line; echo $line");
    stage.run.request.input = Input::terminal;
    Client first = stage.begin();
    Side side(stage, as_relay);
    Client client(std::move(side.from), std::move(side.to));
    client.send(wire::Attach{wire::k_version, wire::Role::owner, 0, 0});
    ASSERT_TRUE(client.reads_until([&] { return client.hello.has_value(); }));
    ::kill(side.pid, SIGSTOP); // by now its streams belong to the supervisor
    client.send(wire::Stdin{0, "hello\n"});
    ASSERT_TRUE(client.reads_until([&] { return client.out == "hello\n"; }));
    ::kill(side.pid, SIGCONT);
    ::kill(side.pid, SIGKILL);
    EXPECT_FALSE(client.reads_to_the_end()) << "and they end with it";
    Client other = stage.attach(wire::Role::owner, 6, 0);
    other.send(wire::Stdin{6, "again\n"});
    ASSERT_TRUE(other.reads_to_the_end());
    EXPECT_EQ(other.out, "again\n");
}

/// A supervisor without free descriptors reports so and closes the connection, possibly before the
/// streams arrive.
TEST(Relay, PassesOnWhyItIsTurnedAwayHoweverSoon)
{
    Stage stage = Stage::shell("true");
    const auto listener = listen_at(socket_names(stage.options).front(), 1);
    ASSERT_TRUE(listener) << listener.error().text;
    for (int i = 0; i < 50; ++i) {
        Side side(stage, as_relay);
        {
            const Descriptor client(::accept(listener->get(), nullptr, nullptr));
            ASSERT_TRUE(write_all(client.get(), "full"));
        }
        char bytes[8] = {};
        ASSERT_EQ(::read(side.from.get(), bytes, sizeof bytes), 4) << i;
        ASSERT_STREQ(bytes, "full");
        ASSERT_EQ(side.wait(), 0);
    }
}

TEST(Relay, ThatDiesTakesNothingWithIt)
{
    Stage stage = Stage::shell("echo ready; read line; echo $line");
    stage.run.request.input = Input::terminal;
    Client first = stage.begin();
    {
        Side side(stage, as_relay);
        Client client(std::move(side.from), std::move(side.to));
        client.send(wire::Attach{wire::k_version, wire::Role::owner, 0, 0});
        ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    }
    Side side(stage, as_relay);
    Client client(std::move(side.from), std::move(side.to));
    client.send(wire::Attach{wire::k_version, wire::Role::owner, 6, 0});
    client.send(wire::Stdin{0, "again\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "again\n");
}

TEST(Relay, StaysWhileSlurmEndsTheJob)
{
    Stage stage =
        Stage::shell("trap 'echo saved; exit 85' TERM; echo ready; while :; do sleep 0.02; done");
    stage.slurm("state", std::to_string(static_cast<int>(JobState::timeout)));
    Client first = stage.begin();
    Side side(stage, as_relay);
    const pid_t relay = side.pid;
    Client client(std::move(side.from), std::move(side.to));
    client.send(wire::Attach{wire::k_version, wire::Role::owner, 0, 0});
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    for (const pid_t pid : {relay, stage.supervisor(), stage.guardian(), client.started->pid}) {
        ::kill(pid, SIGTERM);
    }
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "ready\nsaved\n");
    EXPECT_EQ(client.ended->ending.cause, Cause::time_limit);
}

TEST(Relay, SaysWhenNobodyIsThere)
{
    Stage stage = Stage::shell("true");
    stage.options.patience.connecting = 100ms;
    Side side(stage, as_relay);
    EXPECT_EQ(side.wait(), k_status_no_supervisor);
}

TEST(Guard, FreesTheAllocationWhenEverybodyElseWasKilled)
{
    Stage stage = Stage::shell("setsid sleep 1000 & echo $!; echo ready; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(
        client.reads_until([&] { return client.started && client.out.ends_with("ready\n"); }));
    const pid_t daemon = std::stoi(client.out);
    Side side(stage, as_guard);
    // Connections are served in order: once the viewer was served, so was the guard.
    Client bytes(std::move(side.from), Descriptor());
    ASSERT_TRUE(bytes.reads_until([&] { return bytes.hello.has_value(); }));
    Client viewer = stage.attach();
    ASSERT_TRUE(viewer.reads_until([&] { return viewer.out == client.out; }));
    const pid_t supervisor = stage.supervisor();
    ::kill(stage.guardian(), SIGSTOP);
    ::kill(supervisor, SIGKILL);
    ::kill(stage.guardian(), SIGKILL);
    EXPECT_EQ(side.wait(), 0);
    EXPECT_EQ(stage.slurm_calls(), "complete 42 119\n");
    EXPECT_TRUE(eventually([&] { return is_gone(client.started->pid); }))
        << "the program goes with its supervisor";
    EXPECT_TRUE(eventually([&] { return is_gone(daemon); }))
        << "and so does what it has left behind";
}

TEST(Guard, DoesNotDelayTheEnd)
{
    Stage stage = Stage::shell("echo ready; read line; exit 2");
    stage.run.request.input = Input::terminal;
    stage.options.patience.closing = 600s;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    Side side(stage, as_guard);
    Client bytes(std::move(side.from), Descriptor());
    ASSERT_TRUE(bytes.reads_until([&] { return bytes.hello.has_value(); }));
    Client viewer = stage.attach();
    ASSERT_TRUE(viewer.reads_until([&] { return viewer.out == "ready\n"; }));
    viewer.close_all();
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 2); // neither waits for the other
    EXPECT_EQ(stage.slurm_calls(), "complete 42 2\n");
}

TEST(Guard, ThatIsNotLetInEndsNoRun)
{
    Stage stage = Stage::shell("echo ready; read line; exit 2");
    stage.run.request.input = Input::terminal;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    {
        const NoneLeft none(stage.supervisor());
        EXPECT_EQ(Side(stage, as_guard).wait(), k_status_no_supervisor);
    }
    EXPECT_EQ(stage.slurm_calls(), "");
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 2);
}

std::string text_of(const std::filesystem::path& path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Socket, WithoutAnyNameTheRunGoesOn)
{
    Stage stage = Stage::shell("echo hi");
    std::vector<Descriptor> taken;
    for (const std::string& name : socket_names(stage.options)) {
        taken.push_back(listen_at(name, 1).value());
    }
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "hi\n");
    ASSERT_EQ(client.notes.size(), 1U);
    EXPECT_NE(client.notes[0].find("in use by another process"), std::string::npos);
}

/// A listener of another user at this name, during the object's lifetime.
class Squatter {
public:
    explicit Squatter(const std::string& name)
    {
        Result<Pipe> reported = make_pipe();
        m_pid = ::fork();
        if (m_pid == 0) {
            constexpr uid_t k_daemon = 1;
            const bool changed = ::setuid(k_daemon) == 0;
            const auto listener = listen_at(name, 1);
            write_all(reported->write.get(), changed && listener ? "y" : "n");
            ::pause();
            ::_exit(0);
        }
        char answer = 0;
        EXPECT_EQ(::read(reported->read.get(), &answer, 1), 1);
        EXPECT_EQ(answer, 'y');
    }
    ~Squatter()
    {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
    Squatter(const Squatter&) = delete;
    Squatter& operator=(const Squatter&) = delete;

private:
    pid_t m_pid = -1;
};

TEST(Socket, ThatAnotherUserHasIsNamedAndAnotherOneIsUsed)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root may be somebody else";
    }
    Stage stage = Stage::shell("read line; echo $line");
    stage.run.request.input = Input::terminal;
    const std::string name = socket_names(stage.options).front();
    const Squatter squatter(name);
    Client first = stage.begin();
    Client other = stage.attach(wire::Role::owner, 0, 0);
    other.send(wire::Stdin{0, "again\n"});
    ASSERT_TRUE(other.reads_to_the_end());
    EXPECT_EQ(other.out, "again\n");
    EXPECT_EQ(stage.wait(), 0);
    const std::string journal =
        text_of(stage.state(layout::journal(stage.options.key, stage.options.link)));
    EXPECT_NE(journal.find("\"other_user\""), std::string::npos) << journal;
    EXPECT_NE(journal.find(name + " belongs to user daemon (1)"), std::string::npos) << journal;
}

} // namespace
} // namespace gpuq::supervisor
