// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/ending.h"

#include "ports/job.h"
#include "supervisor/stage.h"

namespace gpuq::supervisor {
namespace {

struct Ended {
    int status = 0;
    Cause cause = Cause::finished;
    std::string detail;
};

/// Runs the stage to its end and checks that client, journal, exit status and Slurm agree.
Ended ended(Stage& stage)
{
    Client client = stage.begin();
    EXPECT_TRUE(client.reads_to_the_end());
    client.close_all();
    const int status = stage.wait();
    if (!client.ended) {
        return {};
    }
    const Ending& ending = client.ended->ending;
    const auto journaled = stage.event(Event::Kind::ended);
    EXPECT_EQ(ending.status, status);
    EXPECT_TRUE(journaled);
    if (journaled) {
        EXPECT_EQ(journaled->status, status);
        EXPECT_EQ(journaled->cause, ending.cause);
    }
    EXPECT_EQ(stage.slurm_calls(), "complete 42 " + std::to_string(status) + "\n");
    return {ending.status, ending.cause, ending.detail};
}

TEST(Ending, TheStatusIsTheProgramsOwn)
{
    for (const int status : {0, 1, 85, 137, 255}) {
        Stage stage = Stage::shell("exit " + std::to_string(status));
        const Ended end = ended(stage);
        EXPECT_EQ(end.status, status);
        EXPECT_EQ(end.cause, Cause::finished);
    }
}

TEST(Ending, ASignalIs128AndItsNumber)
{
    Stage stage = Stage::shell("kill -SEGV $$");
    const Ended end = ended(stage);
    EXPECT_EQ(end.status, 139);
    EXPECT_EQ(end.cause, Cause::crashed);
    EXPECT_EQ(end.detail, "Segmentation fault");
}

TEST(Ending, WhatCanNotBeExecutedIs127Or126)
{
    const auto status_of = [](const std::string& program) {
        Stage stage({program});
        put(stage.root() / "not-executable", "#!/bin/sh\n");
        put(stage.root() / "no-interpreter", "#!/no/such/shell\n");
        std::filesystem::permissions(stage.root() / "no-interpreter",
                                     std::filesystem::perms::owner_all);
        put(stage.root() / "of-another-machine", "\x7f"
                                                 "ELF of no machine at all\n");
        std::filesystem::permissions(stage.root() / "of-another-machine",
                                     std::filesystem::perms::owner_all);
        const Ended end = ended(stage);
        EXPECT_EQ(end.cause, Cause::not_started);
        return std::to_string(end.status) + " " + end.detail;
    };
    EXPECT_EQ(status_of("no-such-program"), "127 no-such-program: not found on this node");
    EXPECT_EQ(status_of("./nothing"), "127 ./nothing: not found on this node");
    EXPECT_EQ(status_of("./no-interpreter"),
              "127 ./no-interpreter: the interpreter in its first line, or the loader of a binary "
              "program, does not exist on this node");
    EXPECT_EQ(status_of("./not-executable"),
              "126 ./not-executable: can't be executed: Permission denied");
    EXPECT_EQ(status_of("./of-another-machine"),
              "126 ./of-another-machine: can't be executed: Exec format error");
    EXPECT_EQ(status_of("/tmp"), "126 /tmp: can't be executed: Permission denied");
}

TEST(Ending, AWorkingDirectoryThatIsGoneIsNoStart)
{
    Stage stage = Stage::shell("true");
    stage.run.request.work_dir = stage.root() / "gone";
    const Ended end = ended(stage);
    EXPECT_EQ(end.status, 125);
    EXPECT_EQ(end.cause, Cause::not_started);
    EXPECT_NE(end.detail.find("gone can't be entered on this node"), std::string::npos);
}

TEST(Ending, ANodeThatDoesNotSeeTheStateFolderSaysSo)
{
    Stage stage = Stage::shell("true");
    stage.options.state_dir = "/no/such/folder";
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_TRUE(client.hello);
    EXPECT_EQ(client.ended->ending.cause, Cause::not_started);
    EXPECT_EQ(client.ended->ending.detail.find("node n1 does not see /no/such/folder"), 0U);
    EXPECT_EQ(stage.wait(), 125);
    EXPECT_EQ(stage.slurm_calls(), "complete 42 125\n");
}

TEST(Ending, ALinkRunsOnlyOnce)
{
    Stage stage = Stage::shell("echo once >>ran");
    ended(stage);
    Client again = stage.begin();
    ASSERT_TRUE(again.reads_to_the_end());
    again.close_all();
    EXPECT_EQ(stage.wait(), 119);
    EXPECT_EQ(contents(stage.root() / "ran"), "once\n");
    EXPECT_EQ(stage.awaited(Event::Kind::ended).status, 0);
}

TEST(Ending, OfTwoJobsForOneRunOnlyOneRunsIt)
{
    Stage stage = Stage::shell("echo $$ >>ran; while ! test -e go; do sleep 0.01; done");
    Client client = stage.begin();
    ASSERT_TRUE(eventually([&] {
        return stage.event(Event::Kind::program_started) && !contents(stage.root() / "ran").empty();
    }));
    const std::string journal = contents(stage.link_file("journal.jsonl"));

    EXPECT_EQ(stage.status_of_another(JobId{43}), 0);
    EXPECT_EQ(stage.slurm_calls(), "complete 43 0\n");
    EXPECT_EQ(contents(stage.link_file("claim")), "42\n");
    EXPECT_EQ(contents(stage.link_file("journal.jsonl")), journal);

    put(stage.root() / "go", "");
    EXPECT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_EQ(contents(stage.root() / "ran").find('\n'), contents(stage.root() / "ran").size() - 1);
}

TEST(Ending, DaemonsAndAllOtherLeftoversAreKilled)
{
    Stage stage({"/usr/bin/python3", "-c",
                 "import os, time\n"
                 "for kind in range(4):\n"
                 "    if os.fork() == 0:\n"
                 "        if kind > 0: os.setsid()\n"
                 "        if kind > 1 and os.fork(): os._exit(0)\n"
                 "        if kind > 2: os.close(1); os.close(2)\n"
                 "        open('pids', 'a').write('%d\\n' % os.getpid())\n"
                 "        time.sleep(1000)\n"
                 "while os.path.exists('pids') is False or len(open('pids').readlines()) < 4:\n"
                 "    time.sleep(0.01)\n"});
    EXPECT_EQ(ended(stage).status, 0);
    std::ifstream pids(stage.root() / "pids");
    int count = 0;
    for (pid_t pid = 0; pids >> pid; ++count) {
        EXPECT_TRUE(is_gone(pid)) << pid;
    }
    EXPECT_EQ(count, 4);
}

TEST(Ending, WhatStillWritesForAMomentIsHeard)
{
    Stage stage = Stage::shell("(sleep 0.05; echo late) & exit 3");
    stage.options.patience.leftover_output = 5'000ms;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "late\n");
    EXPECT_EQ(client.ended->ending.status, 3);
}

TEST(Ending, TheLastLinesAreKept)
{
    Stage stage = Stage::shell("echo out; for i in 1 2 3 4 5 6 7; do echo e$i >&2; done; exit 1");
    ended(stage);
    EXPECT_EQ(stage.awaited(Event::Kind::ended).tail, "e3\ne4\ne5\ne6\ne7\n");
}

TEST(Ending, AFullGpuIsNamed)
{
    Stage stage = Stage::shell("echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; exit 1");
    const Ended end = ended(stage);
    EXPECT_EQ(end.status, 1);
    EXPECT_EQ(end.cause, Cause::gpu_memory);
}

TEST(Ending, ABatchJobEndsByItself)
{
    Stage stage = Stage::shell("echo hi; exit 4");
    stage.options.first = false;
    Client streams = stage.begin();
    EXPECT_EQ(stage.wait(), 4);
    streams.read_more();
    EXPECT_FALSE(streams.hello);
    EXPECT_EQ(stage.slurm_calls(), "");
    EXPECT_EQ(contents(stage.link_file("out.log")), "hi\n");
}

TEST(Ending, SlurmIsAskedUntilItAnswers)
{
    Stage stage = Stage::shell("exit 5");
    stage.slurm("down", "");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    ASSERT_TRUE(eventually([&] { return !stage.slurm_calls().empty(); }));
    std::filesystem::remove(stage.root() / "slurm" / "down");
    EXPECT_EQ(stage.wait(), 5);
    EXPECT_TRUE(stage.slurm_calls().ends_with("complete while down\ncomplete 42 5\n"))
        << stage.slurm_calls();
}

TEST(Ending, TheProgramsEnvironmentIsTheContracts)
{
    Stage stage =
        Stage::shell("env; ls -l /proc/self/fd | grep -c -- '->'; "
                     "grep -E '^Sig(Blk|Ign)' /proc/self/status; test -d $GPUQ_CHECKPOINT_DIR");
    stage.run.request.setup.env = {{"MINE", "a b=c"}, {"PYTHONUNBUFFERED", "0"}};
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 0);
    const std::string base = stage.options.state_dir + "/runs/" + stage.run.key.text();
    for (const std::string& line :
         {"GPUQ_RUN_ID=" + stage.run.key.text(), std::string("GPUQ_LINK=1"),
          std::string("GPUQ_CAUSE=first"), "GPUQ_CHECKPOINT_DIR=" + base + "/checkpoints",
          "GPUQ_DEADLINE_FILE=" + base + "/link-1/deadline",
          "GPUQ_STOP_FILE=" + base + "/link-1/stop", "GPUQ_SAVE_FILE=" + base + "/link-1/save",
          std::string("MINE=a b=c"), std::string("PYTHONUNBUFFERED=0"),
          // ls: its three standard streams and the directory itself.
          std::string("4"), std::string("SigBlk:\t0000000000000000"),
          std::string("SigIgn:\t0000000000000000")}) {
        EXPECT_NE(("\n" + client.out).find("\n" + line + "\n"), std::string::npos) << line;
    }
}

// ---- Classification of endings ----

int exited(int status)
{
    return status << 8;
}

TEST(Ending, ABatchJobWhoseSlurmstepdWasKilledIsEnded)
{
    Stage stage = Stage::shell("while ! test -e go; do sleep 0.01; done; exit 3");
    stage.options.first = false;
    stage.begin_below([&] { return stage.event(Event::Kind::program_started).has_value(); });
    put(stage.root() / "go", "");
    EXPECT_TRUE(eventually([&] { return stage.slurm_calls() == "complete 42 3\n"; }));
}

TEST(Decide, AKilledProgramHasTheStatusOfItsReason)
{
    const auto status = [](Cause cause, int wait_status) {
        Observed observed;
        observed.wait_status = wait_status;
        observed.termination = Termination{cause, ""};
        return decide(observed, Time{}).status;
    };
    EXPECT_EQ(status(Cause::stopped, exited(0)), 123);
    EXPECT_EQ(status(Cause::cancelled, SIGTERM), 123);
    EXPECT_EQ(status(Cause::time_limit, SIGKILL), 124);
    EXPECT_EQ(status(Cause::time_limit, exited(85)), 85);
    EXPECT_EQ(status(Cause::input_lost, SIGTERM), 125);
    EXPECT_EQ(status(Cause::node_failed, SIGTERM), 119);
    EXPECT_EQ(status(Cause::preempted, exited(0)), 119);
    EXPECT_EQ(status(Cause::memory, SIGTERM), 137);
}

TEST(Decide, AProgramThatDiesOfTheTermOfItsGraceWasPreempted)
{
    Observed observed;
    observed.grace = Termination{Cause::preempted, ""};
    observed.wait_status = SIGTERM;
    EXPECT_EQ(decide(observed, Time{}).cause, Cause::preempted);
    EXPECT_EQ(decide(observed, Time{}).status, 119);
    observed.wait_status = exited(85);
    EXPECT_EQ(decide(observed, Time{}).status, 85);
    observed.wait_status = SIGSEGV;
    EXPECT_EQ(decide(observed, Time{}).cause, Cause::crashed);
}

TEST(Decide, MemoryIsTheCauseOnlyOfAKill)
{
    Observed observed;
    observed.memory.ours = 1;
    observed.wait_status = SIGKILL;
    EXPECT_EQ(decide(observed, Time{}).cause, Cause::memory);
    EXPECT_EQ(decide(observed, Time{}).status, 137);
    observed.rank = "rank 1 on n0";
    EXPECT_EQ(decide(observed, Time{}).detail,
              "the kernel killed the program: the job's memory was used up; rank 1 on n0");
    observed.wait_status = exited(1);
    EXPECT_EQ(decide(observed, Time{}).cause, Cause::finished);
}

TEST(Decide, SlurmsWordForAJobTellsWhyItWasTerminated)
{
    EXPECT_EQ(why_terminated(JobState::timeout)->cause, Cause::time_limit);
    EXPECT_EQ(why_terminated(JobState::cancelled)->cause, Cause::cancelled);
    EXPECT_EQ(why_terminated(JobState::node_fail)->cause, Cause::node_failed);
    EXPECT_EQ(why_terminated(JobState::preempted)->cause, Cause::preempted);
    EXPECT_FALSE(why_terminated(JobState::running));
}

TEST(Ending, AKilledProcessThatTheProgramOutlivesIsToldAndTheStatusStays)
{
    for (const int status : {0, 3}) {
        Stage stage = Stage::shell("echo 2 > slurm/oom_job; exit " + std::to_string(status));
        stage.slurm("oom_job", "0");
        const Ended end = ended(stage);
        EXPECT_EQ(end.status, status);
        EXPECT_EQ(end.cause, Cause::finished);
        EXPECT_EQ(end.detail, "the kernel killed 2 of its processes for memory");
        const Event kill = stage.awaited(Event::Kind::memory_kill);
        EXPECT_EQ(kill.to, 2U);
        EXPECT_EQ(kill.host, "n1");
        EXPECT_EQ(stage.awaited(Event::Kind::ended).to, 2U);
    }
}

TEST(Ending, AShellThatTellsOfAKillForMemoryIsAsGoodAsTheKill)
{
    Stage stage = Stage::shell("echo 1 > slurm/oom_job; exit 137");
    stage.slurm("oom_job", "0");
    const Ended end = ended(stage);
    EXPECT_EQ(end.status, 137);
    EXPECT_EQ(end.cause, Cause::memory);
}

TEST(Ending, AKillOnANodeWhereNothingCountsForTheJobIsToldAsUnknown)
{
    Stage stage = Stage::shell("echo 8 > slurm/oom_node");
    stage.slurm("oom_node", "7");
    EXPECT_EQ(ended(stage).detail,
              "the kernel killed 1 process on its node for memory, possibly not of this run");
    EXPECT_TRUE(stage.event(Event::Kind::memory_kill_nearby));
    EXPECT_FALSE(stage.awaited(Event::Kind::ended).to);
}

TEST(Ending, ClientsHearOfAKillForMemoryWhileTheProgramRuns)
{
    Stage stage =
        Stage::shell("echo 1 > slurm/oom_job; echo done; while test ! -e go; do sleep 0.02; done");
    stage.slurm("oom_job", "0");
    stage.options.patience.memory = 20ms;
    Client client = stage.begin();
    EXPECT_TRUE(client.reads_until([&] { return !client.notes.empty(); }));
    EXPECT_EQ(client.notes,
              (std::vector<std::string>{"the kernel killed 1 of its processes for memory (n1)"}));
    EXPECT_EQ(stage.awaited(Event::Kind::memory_kill).to, 1U);
    put(stage.root() / "go", "");
    EXPECT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 0);
}

} // namespace
} // namespace gpuq::supervisor
