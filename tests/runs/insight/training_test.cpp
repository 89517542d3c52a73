// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/training.h"

#include "core/layout.h"
#include "fakes/fake_files.h"
#include "fakes/memory_store.h"
#include "runs/run_on_disk.h"
#include "telemetry/event_bytes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
namespace events = telemetry::events;

const Time k_begin = Time(1'700'000'000s);

double at(std::chrono::seconds after)
{
    return std::chrono::duration<double>((k_begin + after).time_since_epoch()).count();
}

/// An event file with a step every ten seconds.
std::string event_file(std::int64_t from, std::int64_t to, std::string_view tag = "train/loss")
{
    std::string bytes = events::begin(at(from * 10s));
    for (std::int64_t step = from; step < to; ++step) {
        bytes += events::simple(at(step * 10s), step, tag, 1.0F / static_cast<float>(step + 1));
    }
    return bytes;
}

std::string name(std::chrono::seconds after)
{
    return fmt::format("events.out.tfevents.{}.node1.7.0",
                       (k_begin + after).time_since_epoch() / 1s);
}

class ATraining : public testing::Test {
protected:
    void write(const std::string& path, const std::string& bytes, std::chrono::seconds after)
    {
        m_files.directories["/work"][path] = {bytes, k_begin + after};
    }

    Training read(const LinkProgress& output = {})
    {
        const auto files = read_training_files(m_files, "/work", k_begin);
        EXPECT_EQ(training_files_in(to_text(files)), files);
        return training_of(files, output, k_begin);
    }

    static RunStatus running()
    {
        RunStatus status{fakes::some_run(k_begin, "train").key};
        status.run = fakes::some_run(k_begin, "train");
        status.state = RunState::running;
        status.started_at = k_begin;
        return status;
    }

    fakes::FakeFiles m_files;
};

TEST_F(ATraining, TheEventFilesOfARunAreListedWithoutThoseOfEarlierPrograms)
{
    write("logs/" + name(10s), "own", 20s);
    write("logs/" + name(-2h), "still written", 20s);
    write("logs/metrics.csv", "step", 20s);
    const auto found = list_event_files(m_files, "/work", k_begin);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].path, "logs/" + name(10s));
    EXPECT_TRUE(list_event_files(m_files, "/none", k_begin).empty());
}

TEST_F(ATraining, IsReadFromItsEventFiles)
{
    write("runs/a/" + name(0s), event_file(0, 50), 500s);
    write("old/" + name(0s), event_file(0, 50, "old"), -10s);
    write("other/" + name(-600s), event_file(0, 90, "other/loss"), 500s); // of another run
    const Training training = read();
    EXPECT_EQ(training.source, "runs/a/" + name(0s));
    EXPECT_EQ(training.written_at, k_begin + 500s);
    EXPECT_THAT(training.curves.by_tag(), ElementsAre(Key("train/loss")));
    EXPECT_EQ(training.progress, (telemetry::Progress{"step", 49, {}}));
    EXPECT_DOUBLE_EQ(*training.rate, 0.1);
    EXPECT_EQ(training.usual_interval, 10s);
}

TEST_F(ATraining, TellsWhatOfItsFilesIsDamaged)
{
    write(name(0s), event_file(0, 30) + std::string(57, '\0') + event_file(30, 60), 600s);
    const Training training = read();
    EXPECT_EQ(training.progress, (telemetry::Progress{"step", 59, {}}));
    ASSERT_EQ(training.damage.size(), 1U);
    EXPECT_EQ(training.damage[0].path, name(0s));
    EXPECT_EQ(training.damage[0].bytes, 57U);
}

TEST_F(ATraining, GoesOnInTheNextLinksFolder)
{
    write("version_0/" + name(0s), event_file(0, 50), 490s);
    write("version_1/" + name(600s), event_file(40, 90), 900s);
    const Training training = read();
    const auto& series = *training.curves.find("train/loss");
    EXPECT_EQ(series.points(), 100U);
    EXPECT_EQ(series.restarts(), 1U);
    EXPECT_EQ(series.last()->step, 89);
}

TEST_F(ATraining, KeepsCurvesApartThatAreWrittenAtTheSameTime)
{
    write("train/" + name(0s), event_file(0, 50, "loss"), 500s);
    write("validation/" + name(100s), event_file(10, 20, "loss"), 400s);
    EXPECT_THAT(read().curves.by_tag(), ElementsAre(Key("loss"), Key("validation/loss")));
}

TEST_F(ATraining, OfALongFileIsReadAtItsBeginningAndItsEnd)
{
    std::string bytes = event_file(0, 200'000);
    ASSERT_GT(bytes.size(), 8U << 20);
    write(name(0s), bytes, 500s);
    const auto files = read_training_files(m_files, "/work", k_begin);
    ASSERT_EQ(files.size(), 1U);
    EXPECT_LE(files[0].head.size() + files[0].tail.size(), 5U << 20);
    const Training training = read();
    const auto& series = *training.curves.find("train/loss");
    EXPECT_EQ(series.first()->step, 0);
    EXPECT_EQ(series.last()->step, 199'999);
    EXPECT_EQ(series.restarts(), 0U);
}

TEST_F(ATraining, IsReadFromLightningsTable)
{
    write("logs/version_0/metrics.csv", "epoch,step,train_loss\n0,10,0.5\n0,110,0.25\n", 100s);
    const Training training = read();
    EXPECT_EQ(training.source, "logs/version_0/metrics.csv");
    EXPECT_EQ(training.progress, (telemetry::Progress{"step", 110, {}}));
    EXPECT_DOUBLE_EQ(*training.rate, 1);
}

TEST_F(ATraining, IsReadFromTheTrainersState)
{
    const auto state = [](int step) {
        return fmt::format(R"({{"global_step": {}, "max_steps": 100, "log_history": [
                             {{"loss": 0.5, "step": {}}}]}})",
                           step, step);
    };
    write("out/checkpoint-20/trainer_state.json", state(20), 100s);
    write("out/checkpoint-40/trainer_state.json", state(40), 300s);
    const Training training = read();
    EXPECT_EQ(training.source, "out/checkpoint-40/trainer_state.json");
    EXPECT_EQ(training.progress, (telemetry::Progress{"step", 40, 100}));
    EXPECT_DOUBLE_EQ(*training.rate, 0.1);
    const auto finish = finish_of(training, {}, running(), k_begin + 310s);
    ASSERT_TRUE(finish);
    EXPECT_EQ(finish->at, k_begin + 900s);
    EXPECT_FALSE(finish->is_pace_of_link);
}

TEST_F(ATraining, WithoutFilesIsReadFromItsOutput)
{
    fakes::MemoryStore store;
    const RunKey key = fakes::some_run(k_begin, "train").key;
    ASSERT_TRUE(store.write(layout::log(key, LinkNumber{1}, Stream::err),
                            "  0%|   | 0/300 [00:00<?, ?it/s, loss=0.9]\r"
                            " 50%|#  | 150/300 [00:50<00:50, 3.00it/s, loss=0.5]"));
    const LinkProgress output = read_progress(store, key, LinkNumber{1});
    m_files.directories["/work"];
    const Training training = read(output);
    EXPECT_TRUE(training.progress_is_of_output);
    EXPECT_EQ(training.progress, (telemetry::Progress{"step", 150, 300}));
    EXPECT_EQ(training.rate, 3.0);
    EXPECT_EQ(training.curves.find("loss")->last()->value, 0.5);
    EXPECT_EQ(finish_of(training, output, running(), k_begin + 50s)->at, k_begin + 100s);
}

/// An epoch is reported at its end: all three reported epochs belong to this link.
TEST_F(ATraining, CountsTheFirstEpochForThePaceOfItsLink)
{
    fakes::MemoryStore store;
    const RunKey key = fakes::some_run(k_begin, "train").key;
    const std::string log = layout::log(key, LinkNumber{1}, Stream::out);
    ASSERT_TRUE(
        store.write(log, "epoch 1/10 loss 0.5\nepoch 2/10 loss 0.4\nepoch 3/10 loss 0.3\n"));
    const LinkProgress output = read_progress(store, key, LinkNumber{1});
    const auto finish =
        finish_of(training_of({}, output, k_begin), output, running(), k_begin + 30min);
    ASSERT_TRUE(finish);
    EXPECT_TRUE(finish->is_pace_of_link);
    EXPECT_EQ(finish->at, k_begin + 100min);
    EXPECT_EQ(output.began, (telemetry::Progress{"epoch", 0, 10}));
}

/// An epoch may take an hour: until the next report, the forecast must not change.
TEST_F(ATraining, HasAForecastThatStaysWhileNothingIsTold)
{
    fakes::MemoryStore store;
    const RunKey key = fakes::some_run(k_begin, "train").key;
    ASSERT_TRUE(store.write(layout::log(key, LinkNumber{1}, Stream::out),
                            "epoch 1/10 loss 0.5\nepoch 2/10 loss 0.4\nepoch 3/10 loss 0.3\n"));
    LinkProgress output = read_progress(store, key, LinkNumber{1});
    output.written_at = k_begin + 30min;
    const auto finish = [&](std::chrono::minutes later) {
        return finish_of(training_of({}, output, k_begin), output, running(), k_begin + later)->at;
    };
    EXPECT_EQ(finish(30min), k_begin + 100min);
    EXPECT_EQ(finish(39min), k_begin + 100min);
    EXPECT_EQ(finish(100min + 7min), k_begin + 107min) << "not in the past";
    EXPECT_EQ(finish(29min), k_begin + 100min - 200s) << "a clock behind that of the file";
}

TEST(LinkProgress, IsReadFromBothStreamsInTheirOrder)
{
    fakes::MemoryStore store;
    const RunKey key = fakes::some_run(k_begin, "train").key;
    const std::string bar1 = "\r 10%|#  | 30/300 [00:10<00:50, 3.00it/s]";
    const std::string bar2 = "\r 20%|## | 60/300 [00:20<00:50, 3.00it/s]";
    const std::string first = "{'loss': 0.5, 'epoch': 0.1}\n";
    const std::string second = "{'loss': 0.25, 'epoch': 0.2}\n";
    ASSERT_TRUE(store.write(layout::log(key, LinkNumber{1}, Stream::err), bar1 + bar2));
    ASSERT_TRUE(store.write(layout::log(key, LinkNumber{1}, Stream::out), first + second));
    ASSERT_TRUE(
        store.write(layout::order(key, LinkNumber{1}),
                    fmt::format("e {}\no {}\ne {}\n", bar1.size(), first.size(), bar2.size())));
    const LinkProgress link_progress = read_progress(store, key, LinkNumber{1});
    EXPECT_EQ(link_progress.first, (telemetry::Progress{"step", 30, 300}));
    EXPECT_EQ(link_progress.last, (telemetry::Progress{"step", 60, 300}));
    ASSERT_NE(link_progress.curves.find("loss"), nullptr);
    EXPECT_EQ(link_progress.curves.find("loss")->first(), (telemetry::Point{30, {}, 0.5}));
    EXPECT_EQ(link_progress.curves.find("loss")->last(), (telemetry::Point{60, {}, 0.25}));
}

TEST(LinkProgress, OfALongLogIsReadAtItsBeginningAndItsEnd)
{
    fakes::MemoryStore store;
    const RunKey key = fakes::some_run(k_begin, "train").key;
    const std::string much(1 << 20, '.');
    ASSERT_TRUE(store.write(layout::log(key, LinkNumber{1}, Stream::out),
                            "step 1/9\n" + much + "\nstep 7/9 loss 0.5\n"));
    const LinkProgress link_progress = read_progress(store, key, LinkNumber{1});
    EXPECT_EQ(link_progress.first, (telemetry::Progress{"step", 1, 9}));
    EXPECT_EQ(link_progress.last, (telemetry::Progress{"step", 7, 9}));
}

TEST_F(ATraining, EndsBeyondTheLimitOfItsLinkAndItsRun)
{
    Training training;
    training.progress = telemetry::Progress{"step", 0, 36'000};
    training.rate = 1.0; // ten hours left
    training.written_at = k_begin;
    RunStatus status = running();
    status.ends_at = k_begin + 1h;
    auto finish = finish_of(training, {}, status, k_begin);
    EXPECT_EQ(finish->beyond_limit, 9h);
    EXPECT_EQ(finish->beyond_run, 9h);
    EXPECT_EQ(finish->more_links, 0);
    status.run->request.walltime = std::chrono::hours(8);
    status.run->request.chain = Chain{};
    status.run->request.chain->link = 2h;
    finish = finish_of(training, {}, status, k_begin);
    EXPECT_EQ(finish->beyond_run, 2h);
    EXPECT_EQ(finish->more_links, 4) << "seven hours in links of two";
    status.state = RunState::ended;
    EXPECT_FALSE(finish_of(training, {}, status, k_begin));
}

TEST_F(ATraining, ThatGoesWrongRaisesAnAlarm)
{
    write(name(0s), event_file(0, 50) + events::simple(at(500s), 50, "train/loss", NAN), 500s);
    const Training training = read();
    RunStatus status = running();
    auto alarms = alarms_of(training, status, k_begin + 10min);
    ASSERT_EQ(alarms.size(), 1U);
    EXPECT_EQ(alarms[0].kind, TrainingAlarm::Kind::not_finite);
    EXPECT_EQ(alarms[0].tag, "train/loss");
    EXPECT_EQ(alarms[0].step, 50);
    alarms = alarms_of(training, status, k_begin + 20min);
    ASSERT_EQ(alarms.size(), 2U);
    EXPECT_EQ(alarms[1].kind, TrainingAlarm::Kind::stalled);
    EXPECT_EQ(alarms[1].since, k_begin + 500s);
    status.suspended = true;
    EXPECT_EQ(alarms_of(training, status, k_begin + 20min).size(), 1U);
}

/// In the format of PyTorch's tutorials.
TEST_F(ATraining, HasItsStepsOfAllEpochsAndALossInAnyLetters)
{
    fakes::MemoryStore store;
    const RunKey key = fakes::some_run(k_begin, "train").key;
    ASSERT_TRUE(store.write(layout::log(key, LinkNumber{1}, Stream::out),
                            "Epoch [1/10], Step [300/600], Loss: 0.3\n"
                            "Epoch [1/10], Step [600/600], Loss: 0.2\n"
                            "Epoch [2/10], Step [300/600], Loss: nan\n"));
    const LinkProgress output = read_progress(store, key, LinkNumber{1});
    const Training training = training_of({}, output, k_begin);
    EXPECT_EQ(training.progress, (telemetry::Progress{"step", 900, 6000}));
    EXPECT_EQ(finish_of(training, output, running(), k_begin + 9min)->at, k_begin + 60min);
    const auto alarms = alarms_of(training, running(), k_begin + 9min);
    ASSERT_EQ(alarms.size(), 1U);
    EXPECT_EQ(alarms[0].tag, "Loss");
    EXPECT_EQ(alarms[0].step, 900);
}

TEST(TrainingFiles, AreUnpackedOnlyWhenTheyAreSome)
{
    EXPECT_THAT(training_files_in(""), IsEmpty());
    EXPECT_THAT(training_files_in("0 5 1 3 abc5 hello"), IsEmpty());
    EXPECT_THAT(training_files_in("7 5 1 3 abc5 hello0 "), IsEmpty());
    EXPECT_EQ(training_files_in("0 5 1 3 abc5 hello0 ").size(), 1U);
    EXPECT_THAT(training_files_in("0 4 1 3 abc5 hello0 "), IsEmpty()) << "more than the file has";
}

TEST(OwnPattern, IsThatOfTheRequestThenOfTheEnvironment)
{
    gpuq::Run run = fakes::some_run(k_begin, "train");
    EXPECT_FALSE(own_pattern(run));
    run.environment = {"GPUQ_PROGRESS=E(?P<epoch>.)"};
    EXPECT_TRUE(own_pattern(run)->match("E3"));
    run.request.setup.env = {{"GPUQ_PROGRESS", "S(?P<step>.)"}};
    EXPECT_FALSE(own_pattern(run)->match("E3"));
    run.request.setup.env = {{"GPUQ_PROGRESS", "("}};
    EXPECT_FALSE(own_pattern(run));
}

} // namespace
} // namespace gpuq
