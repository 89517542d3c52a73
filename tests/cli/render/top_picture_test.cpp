// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_picture.h"

#include "cli/render/top_text.h"
#include "runs/insight/plain_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::StartsWith;

TEST(TopPicture, DoesNotKnowWhoWaitsBeforeTheFirstWholeLook)
{
    const Time now{1'795'000'000s};
    TopFound found;
    PoolUse use;
    use.pool.model = "k80";
    use.pool.total = 4;
    use.pool.free = 2;
    use.pool.in_use = 2;
    use.pool.most_on_one_node = 2;
    found.overview.pools = {use};
    EXPECT_EQ(top_picture(found, now).answer, "");
    found.overview.at = now;
    EXPECT_THAT(top_picture(found, now).answer, StartsWith("yes: 2 k80"));
    EXPECT_THAT(top_picture(found, now).answer, EndsWith("; other waiting jobs not known yet"));
    EXPECT_EQ(top_picture(found, now).short_answers.back(), "yes: 2 k80; waiting jobs unknown");
    found.overview.whole_at = now;
    found.overview.waiting = WaitingLine{3, 4};
    EXPECT_THAT(top_picture(found, now).answer, StartsWith("perhaps: 2 k80"));
    EXPECT_THAT(top_picture(found, now).answer, EndsWith("; 3 jobs wait for 4 GPUs"));
    EXPECT_EQ(top_picture(found, now).short_answers.back(), "perhaps: 2 k80; 3 jobs wait");
    Partition queue;
    queue.name = "short";
    queue.max_time = 2h;
    found.overview.queues = {queue};
    found.overview.pools[0].pool.queues = {"short"};
    EXPECT_THAT(top_picture(found, now).short_answers,
                testing::ElementsAre("perhaps: 2 k80 in queue short (up to 2 h); 3 jobs wait",
                                     "perhaps: 2 k80 in queue short; 3 jobs wait",
                                     "perhaps: 2 k80; 3 jobs wait"));
    found.overview.waiting = WaitingLine{1, 4};
    found.overview.pools[0].pool.free = 0;
    EXPECT_EQ(top_picture(found, now).short_answers.back(), "no, next one unknown; 1 job waits");
    found.overview.pools[0].next = now + 1h;
    EXPECT_THAT(top_picture(found, now).short_answers.back(),
                testing::ContainsRegex("^no, next by [0-9:]+; 1 job waits$"));
}

TEST(TopPicture, ARunThatItsUserStopsNeedsNoAttention)
{
    const Time now{1'795'000'000s};
    TopFound found;
    RunStatus status{RunKey::make(now, {9})};
    status.state = RunState::running;
    status.stop = StopRequest{"ada@login", now};
    found.runs = {status};
    const tui::RunRow stopping = top_picture(found, now).runs.at(0);
    EXPECT_EQ(stopping.mark, tui::RunMark::running);
    EXPECT_THAT(stopping.facts, testing::Contains(testing::HasSubstr("requested by ada@login")));
    found.runs[0].suspended = true;
    EXPECT_EQ(top_picture(found, now).runs.at(0).mark, tui::RunMark::attention);
}

/// Its line stays selected and marked.
TEST(TopPicture, AnArrayKeepsItsKeyWhileItsTasksStart)
{
    const Time now{1'795'000'000s};
    const auto row = [&](const std::string& called) {
        OwnJob array;
        array.job.id = JobId{20};
        array.job.called = called;
        array.job.state = JobState::pending;
        TopFound found;
        found.runs = {plain_status(array, "centre", now)};
        return top_picture(found, now).runs.at(0);
    };
    EXPECT_EQ(row("20_[4-9]").id, "20_[4-9]");
    EXPECT_EQ(row("20_[5-9]").key, row("20_[4-9]").key);
}

TEST(TopPicture, ReportsBothTheDiskAndSlurm)
{
    const Time now{1'795'000'000s};
    TopFound found;
    EXPECT_TRUE(top_picture(found, now).listed);
    found.unlisted = Error{Error::Kind::io, "/home/ada/runs: Stale file handle"};
    EXPECT_FALSE(top_picture(found, now).listed);
    EXPECT_EQ(top_picture(found, now).trouble, "/home/ada/runs: Stale file handle");
    found.overview.silent = "Slurm does not respond";
    EXPECT_EQ(top_picture(found, now).trouble,
              "/home/ada/runs: Stale file handle; Slurm does not respond");
    EXPECT_THAT(top_text(found, now, 80), testing::HasSubstr("your runs can't be read"));
}

TEST(TopPicture, ShowsByWhomANodeIsReserved)
{
    const Time now{1'795'000'000s};
    TopFound found;
    PoolUse use;
    use.pool.model = "k80";
    use.nodes = {{"n0", 2, 0}, {"n1", 2, 0}};
    found.overview.pools = {use};
    found.overview.at = now;
    const Reservation ended{"gpuq:eva:dl", now - 2h, now, "n1", "", {"ben"}, {}};
    const Reservation on{"gpuq:ada:ml", now - 1h, now + 1h, "n0", "", {"ben"}, {}};
    found.overview.reserved = {{ended, 2, {"n1"}, {}}, {on, 2, {"n0"}, {}}};
    const auto nodes = top_picture(found, now).gpus.front().nodes;
    EXPECT_THAT(nodes[0].reserved, StartsWith("reserved until "));
    EXPECT_THAT(nodes[0].reserved, EndsWith(" by ada (ml)"));
    EXPECT_EQ(nodes[1].reserved, "");
}

TopCloser a_chain(Time now)
{
    TopCloser closer{{*RunKey::parse("20261123T072953.601Z-9ace793821375167")}, {}, {}, {}, {}, {}};
    closer.run.state = RunState::running;
    closer.run.link = LinkNumber{2};
    closer.run.run = Run{closer.run.key};
    Request& request = closer.run.run->request;
    request.walltime = 4h;
    request.gpus.count = 2;
    request.nodes = 1;
    request.chain.emplace();
    request.chain->link = 1h;
    LinkPast first;
    first.link = LinkNumber{1};
    first.started_at = now - 90min;
    first.ending.emplace();
    first.ending->at = now - 30min;
    LinkPast second;
    second.link = LinkNumber{2};
    second.started_at = now - 30min;
    second.checkpoint = "/home/ada/out/epoch-12.pt";
    closer.run.links = {first, second};
    closer.saved_at = now - 3min;
    return closer;
}

TEST(TopDetail, TellsHowFarAChainIsAndWhatItHasSaved)
{
    const Time now{1'795'000'000s};
    EXPECT_THAT(top_detail(a_chain(now), now).facts,
                testing::ElementsAre(testing::ContainsRegex(
                    "^link 2 of about [0-9]+, 1 h 30 min of 4 h used, 3.0 "
                    "GPU-hours; newest checkpoint epoch-12.pt, 3 min ago$")));
}

/// The path of its directory would leave no room for the name.
TEST(TopDetail, NamesCheckpointsWithinTheRun)
{
    const Time now{1'795'000'000s};
    TopCloser closer = a_chain(now);
    LinkRecords records;
    records.link = LinkNumber{2};
    for (const std::string& directory :
         {"/home/ada/.state/gpuq/runs/" + closer.run.key.text() + "/checkpoints",
          std::string("out")}) {
        Event event;
        event.kind = Event::Kind::checkpoint;
        event.at = now - 60s;
        event.detail = directory + "/epoch-7.pt";
        event.to = 100;
        records.journal.push_back(event);
    }
    closer.links = {records};
    std::vector<std::string> texts;
    for (const tui::Event& event : top_detail(closer, now).events) {
        texts.push_back(event.text);
    }
    EXPECT_THAT(texts, testing::IsSupersetOf({"saved checkpoints/epoch-7.pt, 100 bytes",
                                              "saved out/epoch-7.pt, 100 bytes"}));
}

TEST(TopPicture, TellsOfARunThatLostProcessesForMemory)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    EXPECT_EQ(top_picture(found, now).runs[0].facts.size(), 2U);
    found.runs[0].memory_kills = 2;
    EXPECT_EQ(top_picture(found, now).runs[0].facts[1],
              "the kernel has killed 2 of its processes for memory");
}

TEST(TopPicture, CountsTheTimeOfEarlierLinksWhileAChainWaits)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    found.runs[0].state = RunState::waiting;
    found.runs[0].links[1].started_at.reset();
    EXPECT_EQ(top_picture(found, now).runs[0].time, "1 h / 4 h");
}

TEST(TopPicture, HasTheForecastOfAWaitingRun)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs.push_back(RunStatus{*RunKey::parse("20261123T072953.601Z-9ace793821375167")});
    found.runs[0].state = RunState::waiting;
    found.runs[0].reason = "Resources";
    found.runs[0].job.emplace().job = JobId{7};
    OwnJob own;
    own.job.id = JobId{7};
    own.ahead = 2;
    own.forecast = StartForecast{now + 20min, now + 60min, ""};
    found.overview.jobs = {own};
    const std::string facts = top_picture(found, now).runs.at(0).facts.at(0);
    EXPECT_THAT(facts, testing::ContainsRegex("; 2 jobs before it; 50 % by .*, 90 % by "));
    EXPECT_THAT(facts, testing::Not(testing::HasSubstr("not known")));
    const auto document = [&](Time at) { return report::json_document(top_document(found, at)); };
    EXPECT_THAT(document(now), testing::HasSubstr(R"("start_p50": "2026-11-18T11:26:40)"));
    EXPECT_THAT(document(now), testing::HasSubstr(R"("start_p90": "2026-11-18T12:06:40)"));
    EXPECT_THAT(document(now + 61min), testing::HasSubstr(R"("start_p50": null)"));
    found.overview.jobs[0].forecast->unknown = "hidden";
    found.overview.jobs[0].forecast->p50.reset();
    EXPECT_THAT(top_picture(found, now).runs.at(0).facts.at(0),
                testing::Not(testing::HasSubstr("50 %")));
}

TEST(TopPicture, TellsARunThatWasReleasedFromOneThatWasStopped)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    found.runs[0].state = RunState::ended;
    found.runs[0].ending.emplace();
    found.runs[0].ending->cause = Cause::stopped;
    EXPECT_EQ(top_picture(found, now).runs[0].state, "stopped");
    found.runs[0].ending->detail = "released: its GPUs were unused for 8 min";
    EXPECT_EQ(top_picture(found, now).runs[0].state, "released");
}

TEST(TopDetail, SaysThatIdleGpusAreLeftAlone)
{
    const Time now{1'795'000'000s};
    TopCloser closer = a_chain(now);
    closer.idle.exemption = Exemption{"ada@login1", "waits for data", now};
    EXPECT_THAT(top_detail(closer, now).facts,
                testing::Contains("exempt: its idle GPUs are not released: exempted by ada@login1 "
                                  "(waits for data)"));
}

TEST(TopPicture, MeasuresAChainByTheTimeOfAllItsLinks)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    found.runs[0].started_at = now - 30min;
    EXPECT_DOUBLE_EQ(top_picture(found, now).runs[0].part.value(), 1.5 / 4);
}

/// The last value is NaN even if the one before it was valid.
TEST(TopDetail, DoesNotShowALossThatHasBecomeNaNByItsLastNumber)
{
    const Time now{1'795'000'000s};
    TopCloser closer = a_chain(now);
    closer.training.training.curves.add("loss", {1, now, 0.5});
    closer.training.training.curves.add("loss", {2, now, NAN});
    const auto curves = top_detail(closer, now).curves;
    ASSERT_EQ(curves.size(), 1U);
    ASSERT_EQ(curves[0].dots.size(), 2U);
    EXPECT_EQ(curves[0].dots[0].value, 0.5);
    EXPECT_TRUE(std::isnan(*curves[0].dots[1].value));
}

TEST(TopDetail, HasCurvesOfTheProcessorsToo)
{
    const Time now{1'795'000'000s};
    TopCloser closer = a_chain(now);
    for (int i = 0; i < 3; ++i) {
        Sample sample;
        sample.at = now + i * 1s;
        sample.run[RunMetric::cpu] = Reading::of(2500U * static_cast<unsigned>(i));
        sample.run[RunMetric::memory] = Reading::of(std::uint64_t{3} << 30U);
        closer.samples.push_back(sample);
    }
    const auto curves = top_detail(closer, now).curves;
    ASSERT_EQ(curves.size(), 2U);
    EXPECT_EQ(curves[0].title, "processors");
    ASSERT_EQ(curves[0].dots.size(), 2U);
    EXPECT_EQ(curves[0].dots[0].value, 2.5);
    EXPECT_EQ(curves[0].dots[1].value, 2.5);
    EXPECT_EQ(curves[1].title, "memory");
    closer.training.training.curves.add("accuracy", {1, now, 0.5});
    closer.training.training.curves.add("loss", {1, now, 0.5});
    std::vector<std::string> titles;
    for (const tui::Curve& curve : top_detail(closer, now).curves) {
        titles.push_back(curve.title);
    }
    EXPECT_THAT(titles, testing::ElementsAre("loss", "accuracy", "processors", "memory"))
        << "the program's first, for there may be room for two";
    EXPECT_EQ(curves[1].dots.back().value, 3.0);
}

/// On a node without cgroups the CPU time is measured every five seconds; the samples in between
/// repeat the last value.
TEST(TopDetail, HasNoSpikesWhereTheProcessorsAreLookedAtMoreRarely)
{
    const Time now{1'795'000'000s};
    TopCloser closer = a_chain(now);
    for (int i = 0; i < 40; ++i) {
        Sample sample;
        sample.at = now + i * 1s;
        sample.run[RunMetric::cpu] = Reading::of(1000U * static_cast<unsigned>(i / 5 * 5));
        closer.samples.push_back(sample);
    }
    closer.samples[30].run[RunMetric::cpu] = {};
    const auto curves = top_detail(closer, now).curves;
    ASSERT_EQ(curves.size(), 1U);
    ASSERT_EQ(curves[0].dots.size(), 39U);
    for (std::size_t i = 10; i < 29; ++i) {
        EXPECT_EQ(curves[0].dots[i].value, 1.0) << i;
    }
    EXPECT_FALSE(curves[0].dots[29].value || curves[0].dots[30].value) << "nothing was measured";
    EXPECT_TRUE(curves[0].dots[31].value);
}

NodeUse node_with(int total, int in_use, int mine)
{
    NodeUse node;
    node.name = "n0";
    node.total = total;
    node.in_use = in_use;
    node.mine = mine;
    return node;
}

/// Every GPU has one state; those in use have their holder where Slurm has named the job.
TEST(TopPicture, HasACellForEveryGpu)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    found.runs[0].job.emplace();
    found.runs[0].job->job = JobId{7};
    found.overview.uid = 1000;
    found.users = {{1001, "ada"}};
    PoolUse use;
    use.pool.model = "k80";
    use.pool.total = 8;
    NodeUse node = node_with(8, 5, 2);
    node.blocked = 1;
    use.nodes = {node};
    found.overview.pools = {use};
    Holding mine{"n0", "k80", 2, JobId{7}, "", 1000, now, now + 1h};
    Holding others{"n0", "k80", 2, JobId{8}, "8_1", 1001, {}, {}};
    found.overview.holdings = {mine, others};
    NodeSample sample;
    sample.header.node = "n0";
    sample.header.gpus.resize(2);
    sample.newest.emplace();
    sample.newest->gpus.resize(2);
    sample.newest->gpus[1][GpuMetric::busy] = Reading::of(9700);
    found.newest = {{found.runs[0].key.text(), {sample}}};
    const tui::Picture picture = top_picture(found, now);
    const auto& gpus = picture.gpus[0].nodes[0].gpus;
    using State = tui::Gpu::State;
    std::vector<State> states;
    for (const tui::Gpu& gpu : gpus) {
        states.push_back(gpu.state);
    }
    EXPECT_EQ(states,
              (std::vector<State>{State::mine, State::mine, State::others, State::others,
                                  State::others, State::free, State::free, State::reserved}));
    EXPECT_FALSE(gpus[0].busy);
    EXPECT_DOUBLE_EQ(gpus[1].busy.value(), 0.97);
    EXPECT_EQ(picture.holders[0].key, found.runs[0].key.text());
    EXPECT_EQ(picture.holders[1].who, "ada");
    EXPECT_EQ(picture.holders[1].id, "8_1");
    EXPECT_EQ(gpus[4].holder, -1) << "more in use than the holders known";
}

TEST(TopPicture, UnknownUseIsNotFree)
{
    TopFound found;
    PoolUse use;
    NodeUse node = node_with(2, 0, 0);
    node.in_use.reset();
    use.nodes = {node};
    found.overview.pools = {use};
    const tui::Picture picture = top_picture(found, Time());
    for (const tui::Gpu& gpu : picture.gpus[0].nodes[0].gpus) {
        EXPECT_EQ(gpu.state, tui::Gpu::State::unknown);
    }
}

/// A spike of a single step stays visible: both ends of a bucket are drawn.
TEST(TopDetail, KeepsTheSpikesOfALongTraining)
{
    const Time now{1'795'000'000s};
    TopCloser closer = a_chain(now);
    for (int step = 0; step < 100'000; ++step) {
        closer.training.training.curves.add("loss", {step, {}, step == 77'777 ? 100.0 : 1.0});
    }
    closer.training.training.progress = telemetry::Progress{"step", 50, 200};
    const tui::Detail detail = top_detail(closer, now);
    const auto& dots = detail.curves[0].dots;
    EXPECT_TRUE(std::any_of(dots.begin(), dots.end(),
                            [](const tui::Dot& dot) { return dot.value == 100.0; }));
    EXPECT_TRUE(
        std::is_sorted(dots.begin(), dots.end(), [](const tui::Dot& one, const tui::Dot& other) {
            return one.step < other.step;
        }));
    EXPECT_DOUBLE_EQ(detail.progress.value(), 0.25);
    EXPECT_DOUBLE_EQ(detail.loss.value(), 1.0);
}

TEST(TopText, PrintsAllRunsAndNoKeys)
{
    const Time now{1'795'000'000s};
    TopFound found;
    for (int i = 0; i < 60; ++i) {
        found.runs.push_back(a_chain(now).run);
        found.runs.back().run->request.name =
            fmt::format("train-{:02}-{}", i, std::string(90, 'n'));
    }
    const std::string text = top_text(found, now, std::nullopt);
    EXPECT_THAT(text, testing::HasSubstr("train-59-" + std::string(90, 'n')));
    EXPECT_THAT(top_text(found, now, 80), testing::Not(testing::ContainsRegex("[^\n]{120}")));
    found.runs.clear();
    EXPECT_THAT(top_text(found, now, 80), EndsWith("\nno runs, and none ended within a day\n"));
    found.trouble = "Slurm is \x1b[2J silent";
    EXPECT_THAT(top_text(found, now, 80), testing::HasSubstr("Slurm is ^[[2J silent"));
}

} // namespace
} // namespace gpuq::cli
