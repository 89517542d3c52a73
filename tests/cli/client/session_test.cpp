// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/session.h"

#include "cli/client/scripted_client.h"
#include "runs/records/own_names.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

wire::Output out(std::uint64_t offset, std::string bytes)
{
    return {Stream::out, offset, std::move(bytes)};
}

Ending ended_with(int status, bool continues = false)
{
    return {status, Cause::finished, "", Time{}, continues};
}

class SessionTest : public ::testing::Test {
protected:
    SessionTest() { m_options.handover = 1h; }

    void start(User user = User::pipes)
    {
        m_options.terminal = user == User::terminal;
        m_client.start(user, [this](Services& services, Signals& signals) {
            Session session(services, signals, m_run, JobId{7}, m_options);
            return session.run(m_client.first);
        });
    }

    /// The program has written everything and exited.
    static void end(Supervisor& supervisor, int status, std::uint64_t stdin_read = 0)
    {
        wire::Ended ended{ended_with(status)};
        ended.stdin_read = stdin_read;
        supervisor.send(ended);
        (void)supervisor.receive<wire::Bye>();
    }

    void record_end(int status)
    {
        Event event;
        event.kind = Event::Kind::ended;
        event.status = status;
        event.cause = Cause::finished;
        ASSERT_TRUE(
            m_client.store->write(layout::journal(m_run.key, LinkNumber{1}), to_line(event)));
    }

    void record_log(const std::string& text)
    {
        for (const Stream stream : {Stream::out, Stream::err}) {
            ASSERT_TRUE(m_client.store->write(layout::log(m_run.key, LinkNumber{1}, stream),
                                              stream == Stream::out ? text : ""));
        }
    }

    ScriptedClient m_client;
    gpuq::Run m_run = recorded_run(m_client);
    SessionOptions m_options;
};

TEST_F(SessionTest, ShowsTheOutputAndReturnsTheStatus)
{
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    supervisor.send(out(0, "hello\n"));
    supervisor.send(wire::Output{Stream::err, 0, "oops\n"});
    end(supervisor, 3);
    EXPECT_EQ(m_client.status(), 3);
    EXPECT_EQ(m_client.out(), "hello\n");
    EXPECT_EQ(m_client.err(), "oops\n"
                              "gpuq: run 7 (train) ended with status 3\n"
                              "gpuq: the whole log: gpuq logs 7\n");
}

TEST_F(SessionTest, ReportsOutputThatWillNeverArrive)
{
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    supervisor.send(out(0, "one\n"));
    supervisor.send(out(10, "two\n"));
    end(supervisor, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "one\ntwo\n");
    EXPECT_EQ(m_client.err(), "gpuq: 6 bytes of output were lost: the log could not be written\n");
}

TEST_F(SessionTest, SendsPipedInputAndItsEnd)
{
    m_run.request.input = Input::pipe;
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    m_client.type("abc");
    EXPECT_EQ(supervisor.receive<wire::Stdin>(), (wire::Stdin{0, "abc"}));
    supervisor.send(wire::StdinTaken{3, 1000});
    m_client.end_input();
    EXPECT_EQ(supervisor.receive<wire::StdinEnd>(), wire::StdinEnd{3});
    end(supervisor, 0, 3);
    EXPECT_EQ(m_client.status(), 0);
}

TEST_F(SessionTest, SetsAFileBackToTheFirstByteThatTheProgramHasNotRead)
{
    m_run.request.input = Input::pipe;
    m_client.input_file = "one\ntwo\n";
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    EXPECT_EQ(supervisor.receive<wire::Stdin>(), (wire::Stdin{0, "one\ntwo\n"}));
    EXPECT_EQ(supervisor.receive<wire::StdinEnd>(), wire::StdinEnd{8});
    end(supervisor, 0, 4);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.input_offset(), "4");
}

TEST_F(SessionTest, WarnsThatInputFromAPipeIsLost)
{
    m_run.request.input = Input::pipe;
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    m_client.type("abc");
    EXPECT_EQ(supervisor.receive<wire::Stdin>(), (wire::Stdin{0, "abc"}));
    end(supervisor, 0, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.err(), "gpuq: 3 bytes of standard input were read for the program, which "
                              "read none: gpuq run -n leaves standard input alone\n");
}

TEST_F(SessionTest, ForwardsSignalsOfAScript)
{
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    supervisor.send(out(0, "ready\n"));
    ASSERT_TRUE(m_client.shows("ready"));
    m_client.signal(SIGTERM);
    EXPECT_EQ(supervisor.receive<wire::Signal>().number, SIGTERM);
    end(supervisor, 143);
    EXPECT_EQ(m_client.status(), 143);
}

TEST_F(SessionTest, SendsASignalThatArrivesWithTheRelaysHelloToTheRelay)
{
    m_options.handover = 0ms;
    Supervisor& supervisor = m_client.first_step();
    Supervisor& relay = m_client.relay();
    Supervisor& guard = m_client.guard();
    start();
    supervisor.greet();
    (void)relay.receive<wire::Attach>();
    m_client.signal(SIGSTOP); // until both have arrived
    m_client.signal(SIGTERM);
    relay.greet();
    m_client.signal(SIGCONT);
    EXPECT_EQ(relay.receive<wire::Signal>().number, SIGTERM);
    guard.send(wire::Hello{});
    end(relay, 143);
    EXPECT_EQ(m_client.status(), 143);
}

TEST_F(SessionTest, SendsASignalAgainThatWasLostWithItsConnection)
{
    Supervisor& supervisor = m_client.first_step();
    Supervisor& relay = m_client.relay();
    Supervisor& guard = m_client.guard();
    start();
    supervisor.greet();
    supervisor.send(out(0, "ready\n"));
    ASSERT_TRUE(m_client.shows("ready"));
    m_client.signal(SIGTERM);
    const auto lost = supervisor.receive<wire::Signal>();
    supervisor.disconnect();
    (void)relay.receive<wire::Attach>();
    relay.greet();
    EXPECT_EQ(relay.receive<wire::Signal>(), lost);
    relay.send(wire::SignalTaken{1});
    m_client.signal(SIGINT);
    const auto next = relay.receive<wire::Signal>();
    EXPECT_EQ(next, (wire::Signal{lost.client, 2, SIGINT}));
    guard.send(wire::Hello{});
    end(relay, 130);
    EXPECT_EQ(m_client.status(), 130);
}

TEST_F(SessionTest, StopsTheRunAtTheSecondInterrupt)
{
    Supervisor& supervisor = m_client.first_step();
    start(User::terminal);
    supervisor.greet();
    supervisor.send(out(0, "ready\n"));
    ASSERT_TRUE(m_client.shows("ready"));
    m_client.signal(SIGINT);
    ASSERT_TRUE(m_client.prints("press Ctrl-C again to stop the run; detaching otherwise"));
    m_client.signal(SIGINT);
    EXPECT_EQ(supervisor.receive<wire::Stop>(), wire::Stop{"ada@login1"});
    const auto recorded =
        m_client.store->read(layout::inbox(m_run.key) + "/" + layout::k_stop_request);
    EXPECT_EQ(stop_request_from_json(recorded.value()).value().by, "ada@login1");
    end(supervisor, 123);
    EXPECT_EQ(m_client.status(), 123);
}

TEST_F(SessionTest, DetachesAfterOneInterruptAndLeavesAGuard)
{
    Supervisor& supervisor = m_client.first_step();
    Supervisor& guard = m_client.guard();
    start(User::terminal);
    supervisor.greet();
    supervisor.send(out(0, "ready\n"));
    ASSERT_TRUE(m_client.shows("ready"));
    m_client.signal(SIGINT);
    EXPECT_EQ(supervisor.receive<wire::Bye>(), wire::Bye{}) << "while its srun can pass it on";
    guard.send(wire::Hello{});
    EXPECT_EQ(m_client.status(), 130);
    EXPECT_EQ(m_client.err(), "gpuq: press Ctrl-C again to stop the run; detaching otherwise\n"
                              "gpuq: detached; run 7 continues. Back to it: gpuq attach 7\n");
    EXPECT_EQ(m_client.requests(), "guard 1 of job 7, abandon, abandon");
    const auto shown = shown_from_json(m_client.store->read(layout::shown_json(m_run.key)).value());
    EXPECT_EQ(shown.value(), (Shown{6, 0, LinkNumber{1}})) << "gpuq attach continues here";
}

TEST_F(SessionTest, ReportsALostRunIfItsStepWasEndedWithTheLogin)
{
    m_client.services.steps.first_step_died = true;
    Supervisor& supervisor = m_client.first_step();
    Supervisor& guard = m_client.guard();
    start(User::terminal);
    supervisor.greet();
    supervisor.send(out(0, "ready\n"));
    ASSERT_TRUE(m_client.shows("ready"));
    guard.disconnect();
    supervisor.disconnect();
    ASSERT_TRUE(m_client.prints("the connection to the run is lost"));
    m_client.signal(SIGHUP);
    EXPECT_EQ(m_client.status(), 119);
    EXPECT_THAT(m_client.requests(), EndsWith("has_first_step 7, complete 7 119"));
    const auto ended =
        ending_from_json(m_client.store->read(layout::ended_json(m_run.key)).value());
    EXPECT_EQ(ended.value().cause, Cause::lost);
}

TEST_F(SessionTest, EndsARunWhoseInputIsCutOff)
{
    m_run.request.input = Input::pipe;
    Supervisor& supervisor = m_client.first_step();
    start(User::terminal);
    supervisor.greet();
    supervisor.send(out(0, "ready\n"));
    ASSERT_TRUE(m_client.shows("ready"));
    m_client.signal(SIGHUP);
    EXPECT_EQ(m_client.status(), 129);
    EXPECT_EQ(m_client.err(), "gpuq: left; run 7 ends because its input was cut off\n");
    EXPECT_EQ(m_client.requests(), "")
        << "no guard: the supervisor must see that the client is gone";
}

TEST_F(SessionTest, HandsOverToARelayWithoutRepeatingAByte)
{
    m_options.handover = 0ms;
    m_run.request.input = Input::pipe;
    Supervisor& supervisor = m_client.first_step();
    Supervisor& relay = m_client.relay();
    Supervisor& guard = m_client.guard();
    start();
    m_client.type("abcdef");
    EXPECT_EQ(supervisor.receive<wire::Stdin>(), (wire::Stdin{0, "abcdef"}));
    supervisor.send(out(0, "one\n"));
    ASSERT_TRUE(m_client.shows("one\n"));
    supervisor.send(wire::StdinTaken{2, 1000});
    supervisor.greet();
    EXPECT_EQ(relay.receive<wire::Attach>(),
              (wire::Attach{wire::k_version, wire::Role::owner, 4, 0}));
    relay.greet();
    EXPECT_EQ(relay.receive<wire::Stdin>(), (wire::Stdin{2, "cdef"}));
    relay.send(out(0, "one\ntwo\n"));
    ASSERT_TRUE(m_client.shows("two\n"));
    guard.send(wire::Hello{});
    EXPECT_TRUE(guard.is_left());
    end(relay, 0, 6);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "one\ntwo\n");
    EXPECT_EQ(m_client.requests(), "relay 1 of job 7, guard 1 of job 7, abandon, abandon");
}

TEST_F(SessionTest, ReadsTheEndFromDiskWhenTheConnectionIsLost)
{
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.greet();
    supervisor.send(out(0, "one\n"));
    ASSERT_TRUE(m_client.shows("one\n"));
    record_log("one\ntwo\n");
    record_end(5);
    supervisor.disconnect();
    EXPECT_EQ(m_client.status(), 5);
    EXPECT_EQ(m_client.out(), "one\ntwo\n");
}

TEST_F(SessionTest, ReconnectsAndSaysSo)
{
    Supervisor& supervisor = m_client.first_step();
    Supervisor& relay = m_client.relay();
    Supervisor& guard = m_client.guard();
    start();
    supervisor.greet();
    supervisor.send(out(0, "one\n"));
    ASSERT_TRUE(m_client.shows("one\n"));
    supervisor.disconnect();
    ASSERT_TRUE(m_client.prints("the connection to the run is lost; the run continues, "
                                "reconnecting"));
    EXPECT_EQ(relay.receive<wire::Attach>(),
              (wire::Attach{wire::k_version, wire::Role::owner, 4, 0}));
    relay.greet();
    guard.send(wire::Hello{});
    ASSERT_TRUE(m_client.prints("gpuq: connected\n"));
    relay.send(out(4, "two\n"));
    end(relay, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "one\ntwo\n");
}

TEST_F(SessionTest, ReportsWhatSrunSaidIfNoSupervisorWasStarted)
{
    Supervisor& supervisor = m_client.first_step();
    start();
    supervisor.disconnect("srun: error: task 0 launch failed\nsrun: more\n");
    EXPECT_EQ(m_client.status(), 125);
    EXPECT_THAT(m_client.err(), HasSubstr("srun: error: task 0 launch failed"));
    EXPECT_THAT(m_client.requests(), StartsWith("complete 7 125"));
    const auto ended =
        ending_from_json(m_client.store->read(layout::ended_json(m_run.key)).value());
    EXPECT_EQ(ended.value().cause, Cause::not_started);
}

TEST_F(SessionTest, StopsWithTheStatusOfABrokenPipe)
{
    Supervisor& supervisor = m_client.first_step();
    Supervisor& guard = m_client.guard();
    start();
    supervisor.greet();
    m_client.close_stdout();
    supervisor.send(out(0, "hello\n"));
    guard.send(wire::Hello{});
    EXPECT_EQ(supervisor.receive<wire::Bye>(), wire::Bye{});
    EXPECT_EQ(m_client.status(), 128 + SIGPIPE);
}

// A visitor: gpuq attach.

class VisitTest : public SessionTest {
protected:
    VisitTest() { m_options.part = SessionOptions::Part::visitor; }
};

TEST_F(VisitTest, BeginsAtTheRequestedByte)
{
    m_options.shown = Shown{4, 2, LinkNumber{1}};
    m_options.take = true;
    Supervisor& relay = m_client.relay();
    start();
    EXPECT_EQ(relay.receive<wire::Attach>(),
              (wire::Attach{wire::k_version, wire::Role::viewer, 4, 2}));
    EXPECT_THAT(relay.receive<wire::Take>().by, StartsWith("ada@"));
    relay.greet();
    relay.send(out(4, "two\n"));
    end(relay, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "two\n");
}

TEST_F(VisitTest, UsesTheSocketOnTheNodeOfTheRun)
{
    Supervisor supervisor = Supervisor::by_socket();
    const auto names = own_names(*m_client.store).sockets(::geteuid(), m_run.key, LinkNumber{1});
    m_client.services.machine.listening[names.front()] = supervisor.socket_for_client();
    start();
    m_client.services.machine.listening.clear();
    EXPECT_EQ(supervisor.receive<wire::Attach>(),
              (wire::Attach{wire::k_version, wire::Role::viewer, 0, 0}));
    supervisor.greet();
    supervisor.send(out(0, "one\n"));
    end(supervisor, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "one\n");
    EXPECT_EQ(m_client.requests(), "") << "no step";
}

TEST_F(VisitTest, IsRefusedWithTheSupervisorsReason)
{
    Supervisor& relay = m_client.relay();
    start();
    relay.send(wire::Refused{"32 clients are attached"});
    EXPECT_EQ(m_client.status(), static_cast<int>(exit_status_of(Error::Kind::busy)));
    EXPECT_THAT(m_client.err(),
                HasSubstr("run 7 accepts no more clients: 32 clients are attached"));
}

TEST_F(VisitTest, LeavesWhenAnotherClientTakesTheRun)
{
    Supervisor& relay = m_client.relay();
    start();
    relay.greet();
    relay.send(wire::Taken{"ada@login2"});
    EXPECT_EQ(m_client.status(), 129);
    EXPECT_EQ(m_client.err(), "gpuq: ada@login2 has taken the run over with gpuq attach --take\n"
                              "gpuq: detached; run 7 continues. Back to it: gpuq attach 7\n");
}

TEST_F(VisitTest, IgnoresInputForAProgramWithoutATerminal)
{
    Supervisor& relay = m_client.relay();
    start();
    (void)relay.receive<wire::Attach>();
    relay.greet();
    m_client.type("one\n");
    ASSERT_TRUE(m_client.prints("input typed here is ignored"));
    m_client.type("two\n");
    m_client.end_input();
    end(relay, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.err(), "gpuq: the program takes input only from the client that started the "
                              "run: input typed here is ignored\n")
        << "once";
}

TEST_F(VisitTest, ReadsARunThatIsOverFromDisk)
{
    m_options.over = true;
    record_log("all of it\n");
    record_end(0);
    start();
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "all of it\n");
}

TEST_F(VisitTest, ShowsNothingOfAPeerThatSendsGarbage)
{
    Supervisor& relay = m_client.relay();
    start();
    (void)relay.receive<wire::Attach>();
    relay.greet();
    relay.send(out(0, "one\n"));
    ASSERT_TRUE(m_client.shows("one\n"));
    record_log("one\ntwo\n");
    record_end(0);
    relay.send_bytes(std::string(64, '\xff')); // and stays connected
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out(), "one\ntwo\n");
}

// A program with a terminal: gpuq shell, gpuq run --pty.

class TerminalTest : public SessionTest {
protected:
    TerminalTest()
    {
        m_run.request.input = Input::terminal;
        m_run.request.pty = Pty{};
    }

    /// Connected, with the terminal in raw mode.
    void begin(Supervisor& supervisor)
    {
        start(User::terminal);
        const auto terminal = supervisor.receive<wire::Terminal>();
        EXPECT_EQ(terminal.size, (TerminalSize{24, 80}));
        supervisor.greet();
        supervisor.send(wire::StdinTaken{0, 1000});
        supervisor.send(out(0, "$ "));
        ASSERT_TRUE(m_client.shows("$ "));
    }
};

TEST_F(TerminalTest, PassesKeysAndTheSize)
{
    Supervisor& supervisor = m_client.first_step();
    begin(supervisor);
    m_client.type("l\x03");
    EXPECT_EQ(supervisor.receive<wire::Stdin>(), (wire::Stdin{0, "l\x03"})) << "Ctrl-C is a key";
    m_client.resize(50, 100);
    EXPECT_EQ(supervisor.receive<wire::Terminal>().size, (TerminalSize{50, 100}));
    end(supervisor, 0);
    EXPECT_EQ(m_client.status(), 0);
}

TEST_F(TerminalTest, DetachesByKeysAfterShowingHelp)
{
    Supervisor& supervisor = m_client.first_step();
    Supervisor& guard = m_client.guard();
    begin(supervisor);
    m_client.type("~");
    m_client.type("?");
    ASSERT_TRUE(m_client.prints("Enter ~ d detaches, Enter ~ ~ types ~"));
    m_client.type("\r");
    EXPECT_EQ(supervisor.receive<wire::Stdin>(), (wire::Stdin{0, "\r"}));
    guard.send(wire::Hello{});
    m_client.type("~d");
    EXPECT_EQ(m_client.status(), 130);
    EXPECT_THAT(m_client.err(), HasSubstr("detached; run 7 continues"));
}

TEST_F(TerminalTest, DelaysNotesUntilTheTerminalIsRestored)
{
    Supervisor& supervisor = m_client.first_step();
    begin(supervisor);
    supervisor.send(wire::Note{"15 minutes left"});
    supervisor.send(out(2, "more"));
    ASSERT_TRUE(m_client.shows("more"));
    EXPECT_FALSE(is_readable(m_client.error_stream(), 0ms));
    end(supervisor, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.err(), "gpuq: 15 minutes left\n");
}

TEST_F(TerminalTest, UndoesAModeOnceThatBothConnectionsShowAtAHandover)
{
    m_options.handover = 0ms;
    Supervisor& supervisor = m_client.first_step();
    Supervisor& relay = m_client.relay();
    Supervisor& guard = m_client.guard();
    begin(supervisor);
    (void)relay.receive<wire::Attach>();
    supervisor.send(out(2, "\x1b[>1u#"));
    ASSERT_TRUE(m_client.shows("#"));
    relay.greet();
    relay.send(out(0, "$ \x1b[>1u#+"));
    ASSERT_TRUE(m_client.shows("+"));
    guard.send(wire::Hello{});
    m_client.signal(SIGHUP);
    EXPECT_EQ(m_client.status(), 129);
    EXPECT_THAT(m_client.out(), HasSubstr("\x1b[<u"));
    EXPECT_THAT(m_client.out(), Not(HasSubstr("\x1b[<2u")));
}

TEST_F(TerminalTest, RedrawsTheScreenForANewClient)
{
    m_options.part = SessionOptions::Part::visitor;
    m_options.shown.reset();
    Supervisor& relay = m_client.relay();
    start(User::terminal);
    EXPECT_EQ(relay.receive<wire::Attach>(), (wire::Attach{wire::k_version, wire::Role::viewer,
                                                           wire::k_from_now, wire::k_from_now}));
    EXPECT_TRUE(relay.receive<wire::Terminal>().redraw);
    relay.greet();
    relay.send(wire::Screen{"$ make"});
    ASSERT_TRUE(m_client.shows("$ make"));
    relay.send(out(4711, "\r\ndone"));
    ASSERT_TRUE(m_client.shows("done"));
    end(relay, 0);
    EXPECT_EQ(m_client.status(), 0);
}

} // namespace
} // namespace gpuq::cli
