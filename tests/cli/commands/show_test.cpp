// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/render/show_text.h"
#include "ports/accounting.h"
#include "runs/run_on_disk.h"
#include "telemetry/event_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Show : public testing::Test {
protected:
    FakeServices m_services;

    Show()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
    }

    Time now() { return m_services.time.now(); }

    RunOnDisk run(gpuq::Run record) { return RunOnDisk(m_services.memory, std::move(record)); }

    gpuq::Run train()
    {
        gpuq::Run record = fakes::some_run(now() - 15min, "train");
        record.version = "1.0";
        record.request.program = {"/bin/train", "--title", "two words"};
        record.request.setup.env = {{"TOKEN", "hunter2"}};
        record.environment = {"PATH=/bin", "SECRET=hunter3"};
        return record;
    }

    Use show(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_show_verb, m_services, arguments, globals);
    }
};

TEST_F(Show, TellsAllOfOneRun)
{
    RunOnDisk one = run(train()).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    Event stop;
    stop.kind = Event::Kind::stop_asked;
    stop.at = now() - 2min;
    stop.detail = "by ada@login1";
    one.event(stop).ended({123, Cause::stopped, "by ada@login1", now() - 1min});
    ASSERT_TRUE(
        m_services.memory.write(layout::log(one.key(), LinkNumber{1}, Stream::out), "12345"));
    const Use shown = show({"train"});
    EXPECT_EQ(shown.err, "");
    EXPECT_EQ("\n" + shown.out, R"(
run 8 (train)
  state       was stopped by ada@login1 (exit status 123)
  job         8 on cluster lab
  node        node1
  started     07:50:00
  ended       07:59:00
  program     /bin/train --title 'two words'
  directory   /home/ada
  queue       gpu, for 2 h at most
  GPUs        1
  per node    the queue's share
  environment set: TOKEN; 2 variables of the shell
  submitted   07:45:00 by ada on login1, gpuq 1.0
  output      standard output 5 bytes, standard error 0 bytes
  records     )" + m_services.memory.root() +
                                    "/" + layout::run_dir(one.key()) + R"(
events:
  07:50:00  job 8 began on node1
  07:58:00  asked to stop by ada@login1
  07:59:00  it was stopped by ada@login1
)");
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
}

TEST_F(Show, TellsHowFarItIsAndWhenItWillFinish)
{
    RunOnDisk one = run(train()).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    one.beat(JobId{8}, now() - 1s);
    const std::string log = layout::log(one.key(), LinkNumber{1}, Stream::out);
    ASSERT_TRUE(m_services.memory.write(log, "Epoch 5/50\nEpoch 10/50\n"));
    Use shown = show({"train"});
    EXPECT_THAT(shown.out, HasSubstr("\n  progress    epoch 10 of 50, according to its output\n"));
    // 5 epochs in 10 minutes.
    EXPECT_THAT(shown.out,
                HasSubstr("\n  finish      about 09:20:00, at the pace of this link; 1.3 "
                          "GPU-hours to go\n"));
    ASSERT_TRUE(m_services.memory.write(log, "Epoch 5/500\nEpoch 10/500\n"));
    shown = show({"train"});
    EXPECT_THAT(shown.out, HasSubstr(" after its limit: gpuq extend gives it more time; at the "
                                     "pace of this link; 16.3 GPU-hours to go\n"));
    ASSERT_TRUE(m_services.memory.write(log, "nothing of that kind\n"));
    shown = show({"train"});
    EXPECT_THAT(shown.out, Not(HasSubstr("progress")));
    EXPECT_THAT(shown.out, Not(HasSubstr("finish")));
}

/// Between two links, and until the new link reports progress, the last known progress is shown.
TEST_F(Show, TellsHowFarAChainIsWhileItsNextLinkHasToldNothing)
{
    gpuq::Run chained = train();
    chained.request.chain.emplace().link = std::chrono::hours(1);
    RunOnDisk one = run(chained).submitted(JobId{8}).started(JobId{8}, now() - 60min);
    const LinkNumber first{1}, second{2};
    ASSERT_TRUE(m_services.memory.write(layout::log(one.key(), first, Stream::out),
                                        "epoch 5/50 loss 0.5\nepoch 10/50 loss 0.4\n"));
    Event event;
    event.kind = Event::Kind::ended;
    event.at = now() - 10min;
    event.status = 85;
    event.continues = true;
    one.event(event);
    ASSERT_TRUE(m_services.memory.write(layout::job_json(one.key(), second),
                                        to_json(LinkJob{chained.cluster, JobId{9}, now(), true})));
    EXPECT_THAT(show({"train"}).out,
                HasSubstr("\n  progress    epoch 10 of 50, according to its output\n"));
    event.kind = Event::Kind::supervisor_started;
    event.at = now() - 5min;
    event.job = 9;
    event.host = "node1";
    ASSERT_TRUE(m_services.memory.write(layout::journal(one.key(), second), to_line(event)));
    ASSERT_TRUE(m_services.memory.write(layout::heartbeat(one.key(), second),
                                        to_line(Heartbeat{now() - 1s, JobId{9}, 99, 0, 0})));
    const std::string log = layout::log(one.key(), second, Stream::out);
    ASSERT_TRUE(m_services.memory.write(log, "loading\n"));
    const std::string out = show({"train"}).out;
    EXPECT_THAT(out, HasSubstr("\n  state       running\n"));
    EXPECT_THAT(out, HasSubstr("\n  progress    epoch 10 of 50, according to its output\n"));
    EXPECT_THAT(out, HasSubstr("\n  loss        0.4 at step 10"));
    EXPECT_THAT(out, Not(HasSubstr("finish"))) << "its pace is not known yet";
    ASSERT_TRUE(m_services.memory.write(log, "loading\nepoch 11/50\n"));
    EXPECT_THAT(show({"train"}).out, HasSubstr("\n  progress    epoch 11 of 50"));
}

/// Two GPUs: one with all values known, one with none.
Sample two_gpus(Time at)
{
    Sample sample;
    sample.at = at;
    sample.elapsed = sample.stands_for = 500s;
    sample.gpu_time = {300s, 200s, 500s};
    sample.run[RunMetric::cpu] = Reading::of(754'321);
    sample.run[RunMetric::memory] = Reading::of(std::uint64_t{3} << 30);
    sample.gpus = {GpuSample::unknown(Unknown::not_supported), GpuSample::unknown(Unknown::hung)};
    GpuSample& first = sample.gpus[0];
    first[GpuMetric::busy] = Reading::of(8700);
    first[GpuMetric::memory_used] = Reading::of(10'695'475);
    first[GpuMetric::memory_total] = Reading::of(11'953'767);
    first[GpuMetric::power] = Reading::of(143'200);
    first[GpuMetric::temperature] = Reading::of(61);
    return sample;
}

/// The sample file that a run's node writes.
std::string samples(const Sample& sample)
{
    SampleWriter writer({sample.at - 500s, "node1", {{"GPU-7", "Tesla K80", ""}, {}}});
    std::string bytes = writer.header().bytes;
    bytes = std::string(bytes.size(), '\0') + bytes;
    for (const Piece& piece : writer.add(sample)) {
        bytes.resize(std::max<std::size_t>(bytes.size(), piece.offset + piece.bytes.size()));
        bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
    }
    return bytes;
}

TEST_F(Show, TellsWhatTheGpusDo)
{
    gpuq::Run record = train();
    record.request.gpus.count = 2;
    RunOnDisk one = run(record).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    one.beat(JobId{8}, now() - 1s);
    const std::string path = layout::link_dir(one.key(), LinkNumber{1}) + "/samples-node1";
    ASSERT_TRUE(m_services.memory.write(path, samples(two_gpus(now() - 3s))));
    EXPECT_THAT(show({"train"}).out, HasSubstr(R"(
  GPU 0       87 % busy, 10.2 of 11.4 GiB, 143 W, 61 C
  GPU 1       unknown (the GPU driver does not answer)
  measured    3 s ago on node1; CPU time 12 min 34 s, memory 3.0 GiB
  GPU time    1200 GPU-seconds: 25.0 % busy, 16.7 % idle, 58.3 % unknown
)"));
    ASSERT_TRUE(m_services.memory.write(path, samples(two_gpus(now() - 40s))));
    EXPECT_THAT(show({"train"}).out, HasSubstr("GPU 0       40 s ago: 87 % busy,"));
    one.ended({0, Cause::finished, "", now()});
    const std::string ended = show({"train"}).out;
    EXPECT_THAT(ended, Not(HasSubstr("GPU 0 ")));
    EXPECT_THAT(ended, HasSubstr("\n  GPU time    1200 GPU-seconds: 25.0 % busy"));
}

TEST_F(Show, TellsScriptsTheReasonOfWhatIsUnknown)
{
    gpuq::Run record = train();
    record.request.gpus.count = 2;
    RunOnDisk one = run(record).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    one.beat(JobId{8}, now() - 1s);
    const std::string path = layout::link_dir(one.key(), LinkNumber{1}) + "/samples-node1";
    ASSERT_TRUE(m_services.memory.write(path, samples(two_gpus(now() - 3s))));
    Globals globals;
    globals.json = true;
    const std::string document = show({"train"}, globals).out;
    EXPECT_THAT(document, HasSubstr(R"("busy_percent": 87.0)"));
    EXPECT_THAT(document, HasSubstr(R"("busy_percent": null)"));
    EXPECT_THAT(document, HasSubstr(R"("busy_percent": "hung")"));
    EXPECT_THAT(document, HasSubstr(R"("pcie_rx_kib_per_second": "not_supported")"));
    EXPECT_THAT(document, HasSubstr(R"("allocated_seconds": 1200)"));
    EXPECT_THAT(document, HasSubstr(R"("busy_seconds": 300)"));
    EXPECT_THAT(document, HasSubstr(R"("idle_seconds": 200)"));
    EXPECT_THAT(document, HasSubstr(R"("unknown_seconds": 700)"));
}

TEST_F(Show, PassesOverSamplesThatAreNone)
{
    RunOnDisk one = run(train()).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    const std::string directory = layout::link_dir(one.key(), LinkNumber{1});
    ASSERT_TRUE(m_services.memory.write(directory + "/samples-node1", std::string(9000, '\x1b')));
    ASSERT_TRUE(m_services.memory.write(directory + "/samples-node2", ""));
    const Use shown = show({"train"});
    EXPECT_EQ(shown.err, "");
    EXPECT_THAT(shown.out, Not(HasSubstr("GPU time")));
}

TEST_F(Show, TellsHowATrainingGoesFromItsEventFile)
{
    RunOnDisk one = run(train()).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    one.beat(JobId{8}, now() - 1s);
    ASSERT_TRUE(m_services.memory.write(layout::log(one.key(), LinkNumber{1}, Stream::err),
                                        " 50%|##  | 50/100 [00:50<00:50, 1.00it/s]"));
    std::string bytes;
    for (int step = 1; step <= 50; ++step) {
        const auto at = std::chrono::duration<double>((now() - 60s).time_since_epoch()).count();
        bytes += telemetry::events::simple(at + step, step, "train/loss", 0.25F);
    }
    m_services.on_disk.directories["/home/ada"]["runs/events.out.tfevents.1.n.1"] = {bytes,
                                                                                     now() - 5s};
    const std::string shown = show({"train"}).out;
    EXPECT_THAT(shown,
                HasSubstr("\n  progress    step 50 of 100, 1 steps/s, according to its output\n"
                          "  loss        0.25 (train/loss) at step 50, 10 s ago, in "
                          "runs/events.out.tfevents.1.n.1\n"
                          "  finish      about 08:00:45, at the pace of its newest steps; "
                          "0.0 GPU-hours to go\n"));
    Globals globals;
    globals.json = true;
    const std::string document = show({"train"}, globals).out;
    EXPECT_THAT(document, HasSubstr("\"tag\": \"train/loss\""));
    EXPECT_THAT(document, HasSubstr("\"steps_per_second\": 1"));
    m_services.machine.late.insert(0);
    EXPECT_THAT(show({"train"}).out, Not(HasSubstr("train/loss"))) << "a file system that hangs";
}

TEST_F(Show, TellsWhatIsWrongWithATraining)
{
    RunOnDisk one = run(train()).submitted(JobId{8}).started(JobId{8}, now() - 60min);
    one.beat(JobId{8}, now() - 1s);
    std::string bytes;
    for (int step = 1; step <= 50; ++step) {
        const auto at = std::chrono::duration<double>((now() - 20min).time_since_epoch()).count();
        bytes += telemetry::events::simple(at + step, step, "loss", step < 40 ? 0.25F : NAN);
    }
    m_services.on_disk.directories["/home/ada"]["events.out.tfevents.1"] = {bytes, now() - 19min};
    EXPECT_THAT(show({"train"}).out,
                HasSubstr("\n  alarm       loss is nan since step 40, 19 min 20 s ago\n"
                          "  alarm       no step for 19 min 10 s; usually one every 1 s\n"));
}

TEST_F(Show, LooksIntoTheRunsOwnFolderOfCheckpoints)
{
    RunOnDisk one = run(train()).submitted(JobId{8}).started(JobId{8}, now() - 60min);
    one.beat(JobId{8}, now() - 1s);
    const std::string directory = m_services.memory.root() + "/" + layout::checkpoints(one.key());
    m_services.on_disk.directories[directory]["checkpoint-30/trainer_state.json"] = {
        R"({"global_step": 30, "max_steps": 60, "log_history": [{"loss": 0.5, "step": 30}]})",
        now() - 90s};
    EXPECT_THAT(show({"train"}).out,
                HasSubstr("\n  progress    step 30 of 60, according to " + directory +
                          "/checkpoint-30/trainer_state.json\n"
                          "  loss        0.5 at step 30, 1 min 30 s ago"));
}

TEST_F(Show, HearsOnAPatternOfTheRun)
{
    gpuq::Run record = train();
    record.request.setup.env = {{"GPUQ_PROGRESS", "=> (?P<step>[0-9]+)/(?P<total>[0-9]+)"}};
    RunOnDisk one = run(record).submitted(JobId{8}).started(JobId{8}, now() - 10min);
    one.beat(JobId{8}, now() - 1s);
    ASSERT_TRUE(m_services.memory.write(layout::log(one.key(), LinkNumber{1}, Stream::out),
                                        "epoch 3/4\n=> 5/50\n"));
    EXPECT_THAT(show({"train"}).out,
                HasSubstr("\n  progress    step 5 of 50, according to its output"));
}

TEST_F(Show, NeverShowsAValueOfTheEnvironment)
{
    run(train()).submitted(JobId{8}).started(JobId{8}, now());
    Globals globals;
    globals.json = true;
    const std::string document = show({"8"}, globals).out;
    EXPECT_THAT(document, HasSubstr("\"SECRET\""));
    EXPECT_THAT(document, HasSubstr("\"TOKEN\""));
    EXPECT_THAT(document, Not(HasSubstr("hunter")));
    EXPECT_THAT(show({"8"}).out, Not(HasSubstr("hunter")));
}

TEST_F(Show, KnowsFromAccountingWhatSlurmForgot)
{
    run(train()).submitted(JobId{8});
    PastJob past{JobId{8}};
    past.state = JobState::timeout;
    past.started_at = now() - 10min;
    past.ended_at = now() - 1min;
    m_services.past.past[JobId{8}] = past;
    const Use shown = show({"8"});
    EXPECT_THAT(shown.out, HasSubstr("reached its time limit of 2 h (exit status 124)"));
    EXPECT_THAT(shown.out, HasSubstr("ended       07:59:00"));
}

TEST_F(Show, SaysWhatIsNotKnown)
{
    run(train()).submitted(JobId{8});
    m_services.slurm.silent = true;
    const Use shown = show({"8"});
    EXPECT_EQ(shown.status, 0);
    EXPECT_EQ(shown.err, "gpuq: Slurm does not answer; showing the state on disk\n");
    EXPECT_THAT(shown.out, HasSubstr("state       unknown: Slurm does not answer\n"));
    EXPECT_EQ(show({}).status, 2);
    EXPECT_EQ(show({"nothing"}).status, 120) << "Slurm may have a job of that name";
    m_services.slurm.silent = false;
    EXPECT_EQ(show({"nothing"}).status, 2);
}

TEST_F(Show, ShowsHostileTextsHarmlessly)
{
    gpuq::Run evil = train();
    evil.request.name = "evil\x1b[2J";
    evil.request.program = {"/bin/\x1b[2J\nx"};
    evil.request.work_dir = "/\x9b";
    run(evil).submitted(JobId{8}).started(JobId{8}, now());
    const std::string shown = show({"8"}).out;
    EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
    EXPECT_THAT(shown, Not(HasSubstr("\x9b")));
}

TEST(EventInWords, TellsEveryKind)
{
    const RunStatus status{RunKey::make(Time(), {})};
    for (int kind = 0; kind <= static_cast<int>(Event::Kind::ended); ++kind) {
        Event event;
        event.kind = static_cast<Event::Kind>(kind);
        event.detail = "x";
        EXPECT_NE(event_text(event, status), "") << kind;
    }
    Event lost;
    lost.kind = Event::Kind::log_lost;
    lost.stream = Stream::err;
    lost.from = 10;
    lost.to = 20;
    EXPECT_EQ(event_text(lost, status),
              "bytes 10 to 20 of standard error could not be written and are lost");
}

} // namespace
} // namespace gpuq::cli
