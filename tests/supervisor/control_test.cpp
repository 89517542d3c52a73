// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stage.h"

#include "ports/job.h"

#include <thread>

namespace gpuq::supervisor {
namespace {

const char* const k_ignores_term = "trap '' TERM; echo ready; while :; do sleep 0.05; done";

void put_stop_request(const Stage& stage)
{
    const std::string inbox = stage.state(layout::inbox(stage.run.key));
    put(inbox + "/.new", to_json(StopRequest{"ada@login1", Time{}}));
    std::filesystem::rename(inbox + "/.new", inbox + "/" + layout::k_stop_request);
}

std::string state_number(JobState state)
{
    return std::to_string(static_cast<int>(state));
}

TEST(Stop, FromAClientEndsTheProgram)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    client.send(wire::Stop{"ada@login1"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 123);
    EXPECT_EQ(client.ended->ending.cause, Cause::stopped);
    EXPECT_EQ(client.ended->ending.detail, "by ada@login1");
    client.close_all();
    EXPECT_EQ(stage.wait(), 123);
    EXPECT_EQ(stage.awaited(Event::Kind::stop_asked).detail, "ada@login1");
}

TEST(Stop, FromTheInboxIsSeenWithinASecondOrTwo)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    put_stop_request(stage);
    const auto before = std::chrono::steady_clock::now();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_LT(std::chrono::steady_clock::now() - before, 3s);
    EXPECT_EQ(client.ended->ending.detail, "by ada@login1");
}

TEST(Stop, FromTheInboxCountsAlsoWhenSlurmsTermIsFaster)
{
    Stage stage = Stage::shell("echo ready; exec sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    put_stop_request(stage);
    ::kill(client.started->pid, SIGTERM); // like scancel: to all processes of the job
    ::kill(stage.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 123);
    EXPECT_EQ(client.ended->ending.detail, "by ada@login1");
}

TEST(Stop, FromTheInboxCountsAlsoWhenSlurmsTermReachesTheProgramFirst)
{
    Stage stage = Stage::shell("echo ready; exec sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    put_stop_request(stage);
    ::kill(client.started->pid, SIGTERM);
    std::this_thread::sleep_for(400ms); // a busy node
    ::kill(stage.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 123);
    EXPECT_EQ(client.ended->ending.detail, "by ada@login1");
}

TEST(Stop, AProgramThatIgnoresTermIsKilled)
{
    Stage stage = Stage::shell(k_ignores_term);
    stage.options.patience.stop = 200ms;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    client.send(wire::Stop{"ada@login1"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 123);
}

TEST(Stop, AStoppedProgramHearsIt)
{
    Stage stage = Stage::shell("echo ready; kill -STOP $$; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    client.send(wire::Stop{"ada@login1"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 123);
}

TEST(Stop, BeforeTheStartMeansNoStart)
{
    Stage stage = Stage::shell("echo ran >ran");
    put_stop_request(stage);
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(client.ended->ending.status, 123);
    EXPECT_EQ(client.ended->ending.cause, Cause::stopped);
    EXPECT_EQ(stage.wait(), 123);
    EXPECT_FALSE(std::filesystem::exists(stage.root() / "ran"));
}

TEST(Signals, OfAClientReachTheProgramsGroup)
{
    Stage stage =
        Stage::shell("trap 'echo got; exit 6' INT; echo ready; while :; do sleep 0.02; done");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    client.send(wire::Signal{7, 1, -5});
    client.send(wire::Signal{7, 2, 1000});
    client.send(wire::Signal{7, 3, SIGINT});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "ready\ngot\n");
    EXPECT_EQ(client.ended->ending.status, 6);
}

TEST(Signals, ThatAClientSendsAgainReachTheProgramOnce)
{
    Stage stage = Stage::shell("trap 'echo got' INT; trap 'exit 6' TERM; echo ready; "
                               "while :; do sleep 0.02; done");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    for (int i = 0; i < 3; ++i) {
        client.send(wire::Signal{7, 1, SIGINT});
    }
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\ngot\n"; }));
    client.send(wire::Signal{7, 1, SIGINT});
    client.send(wire::Signal{7, 2, SIGINT});
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\ngot\ngot\n"; }));
    EXPECT_EQ(client.signals_taken, 2U);
    client.send(wire::Signal{8, 1, SIGINT}); // another client
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\ngot\ngot\ngot\n"; }));
    client.send(wire::Signal{7, 3, SIGTERM});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "ready\ngot\ngot\ngot\n");
    EXPECT_EQ(client.ended->ending.status, 6);
}

TEST(Signals, OthersDoNotHurtTheSupervisor)
{
    Stage stage = Stage::shell("echo ready; read line; exit 6");
    stage.run.request.input = Input::terminal;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    for (const int number :
         {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGPIPE}) {
        ::kill(stage.supervisor(), number);
        ::kill(stage.guardian(), number);
    }
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 6);
}

/// Acts like Slurm: sends TERM to all processes of the job.
void terminate_all(Stage& stage, Client& client)
{
    for (const pid_t pid : {stage.supervisor(), stage.guardian(), client.started->pid}) {
        ::kill(pid, SIGTERM);
        ::kill(pid, SIGTERM);
    }
}

Ending terminated(JobState state, const std::string& program, Time ends_at = {})
{
    Stage stage = Stage::shell(program);
    stage.slurm("state", state_number(state));
    stage.kill_wait = 3s;
    if (ends_at != Time{}) {
        stage.options.ends_at = ends_at;
    }
    Client client = stage.begin();
    EXPECT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    terminate_all(stage, client);
    EXPECT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(stage.awaited(Event::Kind::signalled).detail, "TERM");
    return client.ended ? client.ended->ending : Ending{};
}

TEST(Term, OfSlurmIsExplainedBySlurm)
{
    const std::string dies = "echo ready; sleep 1000";
    EXPECT_EQ(terminated(JobState::timeout, dies).cause, Cause::time_limit);
    EXPECT_EQ(terminated(JobState::cancelled, dies).status, 123);
    EXPECT_EQ(terminated(JobState::cancelled, dies).cause, Cause::cancelled);
    EXPECT_EQ(terminated(JobState::node_fail, dies).status, 119);
    EXPECT_EQ(terminated(JobState::preempted, dies).cause, Cause::preempted);
}

/// With proctrack/cgroup, Slurm signals only the child of slurmstepd.
TEST(Term, ThatOnlyTheGuardianGetsEndsTheRun)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    stage.slurm("state", state_number(JobState::cancelled));
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    ::kill(stage.guardian(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::cancelled);
    client.close_all();
    EXPECT_EQ(stage.wait(), 123);
}

TEST(Term, IsAskedAboutAgainWhenSlurmDoesNotAnswer)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    terminate_all(stage, client);
    ASSERT_TRUE(eventually([&] { return stage.slurm_calls() == "job\n"; }));
    stage.slurm("state", state_number(JobState::preempted));
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::preempted);
}

TEST(Term, ThatNobodyExplainsIsACancel)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    stage.kill_wait = 3s;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    const auto before = std::chrono::steady_clock::now();
    terminate_all(stage, client);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::cancelled);
    EXPECT_LT(std::chrono::steady_clock::now() - before, 3s);
}

TEST(Term, AtTheLimitNeedsNoQuestion)
{
    const Ending ending = terminated(JobState::cancelled, "echo ready; sleep 1000",
                                     RealClock().now() + std::chrono::seconds{3});
    EXPECT_EQ(ending.status, 124);
    EXPECT_EQ(ending.cause, Cause::time_limit);
}

TEST(Term, AtALimitThatSomebodyHasChangedTellsIt)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    stage.slurm("state", state_number(JobState::timeout));
    stage.slurm("walltime", "1");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    terminate_all(stage, client);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.detail, "1 min");
}

TEST(Term, AProgramThatIgnoresItIsKilledBeforeSlurmKillsUs)
{
    const auto before = std::chrono::steady_clock::now();
    const Ending ending = terminated(JobState::timeout, k_ignores_term);
    EXPECT_EQ(ending.status, 124);
    EXPECT_LT(std::chrono::steady_clock::now() - before, 3s);
}

TEST(Term, AProgramThatLeavesByItselfAtTheLimitKeepsItsStatus)
{
    const Ending ending = terminated(
        JobState::timeout, "trap 'exit 85' TERM; echo ready; while :; do sleep 0.02; done");
    EXPECT_EQ(ending.status, 85);
    EXPECT_EQ(ending.cause, Cause::time_limit);
}

TEST(Term, ThatComesAfterAProgramHasLeftOnItIsStillTheReason)
{
    Stage stage = Stage::shell("trap 'exit 85' TERM; echo ready; while :; do sleep 0.02; done");
    stage.slurm("state", state_number(JobState::timeout));
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    // On a busy node the program may have exited before Slurm signals the supervisor.
    ::kill(client.started->pid, SIGTERM);
    ASSERT_TRUE(eventually([&] { return ::kill(client.started->pid, 0) != 0; }));
    ::kill(stage.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::time_limit);
    EXPECT_EQ(client.ended->ending.status, 85);
}

TEST(Term, SentByAPersonToARunningJobIsTheProgramsAffair)
{
    Stage stage = Stage::shell("trap 'echo saved' TERM; echo ready; read line; read line; exit 3");
    stage.run.request.input = Input::terminal;
    stage.slurm("state", state_number(JobState::running));
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    terminate_all(stage, client);
    ASSERT_TRUE(client.reads_until([&] { return client.out.ends_with("saved\n"); }));
    ASSERT_TRUE(eventually([&] { return stage.slurm_calls() == "job\n"; }));
    client.send(wire::Stdin{0, "1\n2\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 3);
    EXPECT_EQ(client.ended->ending.cause, Cause::finished);
}

TEST(Warnings, ComeBeforeTheLimitAsSlurmSaysIt)
{
    Stage stage = Stage::shell("echo ready; read line");
    stage.run.request.input = Input::terminal;
    stage.slurm("state", state_number(JobState::running));
    // The supervisor's own estimate is an hour; Slurm, queried once, reports less.
    stage.options.patience.first_query = 100ms;
    stage.slurm(
        "ends_at",
        std::to_string((RealClock().now() + std::chrono::seconds{250}).time_since_epoch().count()));
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return !client.notes.empty(); }));
    EXPECT_EQ(client.notes, std::vector<std::string>{"5 minutes left"});
    EXPECT_EQ(stage.awaited(Event::Kind::warned).detail, "5 minutes left");
    EXPECT_EQ(stage.slurm_calls(), "job\njob\n");
    client.send(wire::Stop{"test"});
    EXPECT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out + client.err, "ready\n");
}

/// The end of a job that is being ended is the present time.
TEST(Warnings, DoNotComeOnceTheRunIsEnded)
{
    Stage stage = Stage::shell(k_ignores_term);
    stage.slurm("state", state_number(JobState::running));
    stage.slurm(
        "ends_at",
        std::to_string((RealClock().now() + std::chrono::seconds{30}).time_since_epoch().count()));
    stage.options.patience.first_query = 700ms;
    stage.options.patience.stop = 2s;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    client.send(wire::Stop{"test"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.notes, std::vector<std::string>{});
    EXPECT_NE(stage.slurm_calls(), "") << "it has asked";
}

TEST(Input, ArrivesWholeAndEnds)
{
    Stage stage = Stage::shell("md5sum");
    stage.run.request.input = Input::pipe;
    Client client = stage.begin();
    const std::string piece(50'000, 'x');
    std::uint64_t offset = 0;
    while (offset < 5'000'000) {
        // Within the advertised credit, as a client does.
        ASSERT_TRUE(client.reads_until([&] {
            return client.taken &&
                   client.taken->offset + client.taken->room >= offset + piece.size();
        }));
        client.send(wire::Stdin{offset, piece});
        offset += piece.size();
    }
    client.send(wire::StdinEnd{offset});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 0);
    EXPECT_EQ(client.out, "9dff3479548c346bbeeeab2c23af22fd  -\n") << "md5 of 5,000,000 x";
}

TEST(Input, SentAgainIsTakenOnce)
{
    Stage stage = Stage::shell("cat");
    stage.run.request.input = Input::pipe;
    Client first = stage.begin();
    first.send(wire::Stdin{0, "one two "});
    ASSERT_TRUE(first.reads_until([&] { return first.out == "one two "; }));
    // A relay does not know how much input the first connection has delivered.
    Client second = stage.attach(wire::Role::owner, first.out_at, 0);
    ASSERT_TRUE(second.reads_until([&] { return second.taken.has_value(); }));
    EXPECT_EQ(second.taken->offset, 8U);
    second.send(wire::Stdin{4, "two three"});
    // The supervisor abandons the first connection without an Ended frame.
    EXPECT_FALSE(first.reads_to_the_end());
    second.send(wire::StdinEnd{13});
    ASSERT_TRUE(second.reads_to_the_end());
    EXPECT_EQ(second.out, "three");
    EXPECT_EQ(second.ended->ending.status, 0);
}

TEST(Input, AnEndOnAnIdleLoopIsPassedOn)
{
    Stage stage = Stage::shell("cat; echo done");
    stage.run.request.input = Input::pipe;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started.has_value(); }));
    client.send(wire::StdinEnd{0});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "done\n");
}

TEST(Input, ThatBreaksOffEndsTheRunAsFailed)
{
    Stage stage = Stage::shell("cat; echo never");
    stage.run.request.input = Input::pipe;
    stage.options.patience.new_owner = 200ms;
    Client client = stage.begin();
    client.send(wire::Stdin{0, "half"});
    ASSERT_TRUE(client.reads_until([&] { return client.out == "half"; }));
    client.close_input();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "half");
    EXPECT_EQ(client.ended->ending.status, 125);
    EXPECT_EQ(client.ended->ending.cause, Cause::input_lost);
}

TEST(Input, ThatIsGivenUpEndsTheRunAtOnce)
{
    Stage stage = Stage::shell("cat; echo never");
    stage.run.request.input = Input::pipe;
    stage.options.patience.new_owner = 60'000ms;
    Client client = stage.begin();
    client.send(wire::Stdin{0, "half"});
    ASSERT_TRUE(client.reads_until([&] { return client.out == "half"; }));
    client.send(wire::Bye{});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::input_lost);
    EXPECT_EQ(client.out, "half");
}

TEST(Input, ANewOwnerInTimeSavesTheRun)
{
    Stage stage = Stage::shell("cat");
    stage.run.request.input = Input::pipe;
    stage.options.patience.new_owner = 15'000ms;
    Client first = stage.begin();
    first.send(wire::Stdin{0, "a"});
    ASSERT_TRUE(first.reads_until([&] { return first.out == "a"; }));
    first.close_all();
    Client second = stage.attach(wire::Role::owner, 1, 0);
    second.send(wire::Stdin{1, "b"});
    second.send(wire::StdinEnd{2});
    ASSERT_TRUE(second.reads_to_the_end());
    EXPECT_EQ(second.out, "b");
    EXPECT_EQ(second.ended->ending.status, 0);
}

TEST(Input, OfAPersonWhoLeavesIsSilence)
{
    Stage stage = Stage::shell("read line; echo $line");
    stage.run.request.input = Input::terminal;
    stage.options.patience.new_owner = 50ms;
    Client first = stage.begin();
    ASSERT_TRUE(first.reads_until([&] { return first.started.has_value(); }));
    first.close_all();
    ::poll(nullptr, 0, 200);
    Client second = stage.attach(wire::Role::owner);
    second.send(wire::Stdin{0, "back\n"});
    ASSERT_TRUE(second.reads_to_the_end());
    EXPECT_EQ(second.out, "back\n");
}

TEST(Input, ThatNobodyReadsDisturbsNobody)
{
    Stage stage = Stage::shell("exec <&-; echo closed; sleep 0.2");
    stage.run.request.input = Input::pipe;
    stage.options.patience.new_owner = 0ms;
    Client client = stage.begin();
    client.send(wire::Stdin{0, std::string(60'000, 'x')});
    ASSERT_TRUE(client.reads_until([&] { return client.out == "closed\n"; }));
    client.close_input();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 0);
}

TEST(Guardian, CleansUpAfterAKilledSupervisor)
{
    Stage stage = Stage::shell("setsid sleep 1000 & echo $!; echo ready; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(
        client.reads_until([&] { return client.started && client.out.ends_with("ready\n"); }));
    const pid_t daemon = std::stoi(client.out);
    ::kill(stage.supervisor(), SIGKILL);
    EXPECT_FALSE(client.reads_to_the_end());
    EXPECT_EQ(stage.wait(), 119);
    EXPECT_EQ(stage.awaited(Event::Kind::ended).cause, Cause::lost);
    EXPECT_EQ(stage.awaited(Event::Kind::ended).status, 119);
    EXPECT_EQ(stage.slurm_calls(), "complete 42 119\n");
    EXPECT_TRUE(is_gone(client.started->pid));
    EXPECT_TRUE(is_gone(daemon));
    const auto socket = connect_to_first(socket_names(stage.options));
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().kind, Error::Kind::missing);
}

TEST(Guardian, WhenItIsKilledTheSupervisorEndsTheRun)
{
    Stage stage = Stage::shell("echo ready; sleep 1000");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    ::kill(stage.guardian(), SIGKILL);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 119);
    EXPECT_EQ(stage.slurm_calls(), "complete 42 119\n") << "who reads the end does not look again";
    client.close_all();
    EXPECT_TRUE(eventually([&] { return is_gone(stage.supervisor()); }));
    EXPECT_EQ(stage.slurm_calls(), "complete 42 119\n");
    EXPECT_TRUE(is_gone(client.started->pid));
}

} // namespace
} // namespace gpuq::supervisor
