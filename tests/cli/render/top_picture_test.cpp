// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    found.overview.whole_at = now;
    found.overview.waiting = WaitingLine{3, 4};
    EXPECT_THAT(top_picture(found, now).answer, StartsWith("perhaps: 2 k80"));
    EXPECT_THAT(top_picture(found, now).answer, EndsWith("; 3 jobs wait for 4 GPUs"));
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

TEST(TopPicture, TellsOfARunThatLostProcessesForMemory)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    EXPECT_EQ(top_picture(found, now).rows[0].facts.size(), 2U);
    found.runs[0].memory_kills = 2;
    EXPECT_EQ(top_picture(found, now).rows[0].facts[1],
              "the kernel has killed 2 of its processes for memory");
}

TEST(TopPicture, CountsTheTimeOfEarlierLinksWhileAChainWaits)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    found.runs[0].state = RunState::waiting;
    found.runs[0].links[1].started_at.reset();
    const report::Table runs = top_picture(found, now).runs;
    EXPECT_EQ(runs.columns[5].name, "time");
    EXPECT_EQ(runs.rows[0][5].text, "1 h / 4 h");
}

TEST(TopPicture, TellsARunThatWasReleasedFromOneThatWasStopped)
{
    const Time now{1'795'000'000s};
    TopFound found;
    found.runs = {a_chain(now).run};
    found.runs[0].state = RunState::ended;
    found.runs[0].ending.emplace();
    found.runs[0].ending->cause = Cause::stopped;
    EXPECT_EQ(top_picture(found, now).runs.rows[0][2].text, "stopped");
    found.runs[0].ending->detail = "released: its GPUs were unused for 8 min";
    EXPECT_EQ(top_picture(found, now).runs.rows[0][2].text, "released");
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
    EXPECT_DOUBLE_EQ(top_picture(found, now).rows[0].part.value(), 1.5 / 4);
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
    ASSERT_EQ(curves[0].values.size(), 2U);
    EXPECT_EQ(curves[0].values[0], 0.5);
    EXPECT_TRUE(std::isnan(*curves[0].values[1]));
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
    EXPECT_EQ(curves[0].values, (std::vector<std::optional<double>>{2.5, 2.5}));
    EXPECT_EQ(curves[1].title, "memory");
    EXPECT_EQ(curves[1].values.back(), 3.0);
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
    ASSERT_EQ(curves[0].values.size(), 39U);
    for (std::size_t i = 10; i < 29; ++i) {
        EXPECT_EQ(curves[0].values[i], 1.0) << i;
    }
    EXPECT_FALSE(curves[0].values[29] || curves[0].values[30]) << "nothing was measured";
    EXPECT_TRUE(curves[0].values[31]);
}

} // namespace
} // namespace gpuq::cli
