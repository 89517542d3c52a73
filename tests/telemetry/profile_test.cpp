// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/profile.h"

#include "telemetry/ledger.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

const Time k_begin{std::chrono::seconds{1'764'000'000}};
constexpr std::uint64_t k_mib = 1 << 20;

/// The samples of one node, second by second.
class Node {
public:
    explicit Node(Time began, std::size_t gpus = 1, std::string name = "node1")
        : m_header{began, std::move(name), std::vector<GpuName>(gpus), 4}
    {
    }
    /// Adds `time` with GPUs at `busy` percent (unset: unknown) and `cores` in use.
    Node& then_runs(std::chrono::seconds time, std::optional<int> busy, double cores = 0,
                    std::uint64_t written = 0)
    {
        for (auto i = 0s; i < time; i += 1s) {
            m_elapsed += 1s;
            m_cpu += cores * 1000;
            m_written += written;
            Sample sample;
            sample.at = m_header.began + m_elapsed;
            sample.elapsed = m_elapsed;
            sample.stands_for = 1s;
            GpuSample gpu = GpuSample::unknown(Unknown::no_driver);
            if (busy) {
                gpu = GpuSample::unknown(Unknown::not_supported);
                gpu[GpuMetric::busy] = Reading::of(static_cast<std::uint64_t>(*busy) * 100);
                gpu[GpuMetric::memory_used] = Reading::of(2 << 20);
                gpu[GpuMetric::memory_total] = Reading::of(80 << 20);
            }
            sample.gpus.assign(m_header.gpus.size(), gpu);
            sample.run[RunMetric::cpu] = Reading::of(static_cast<std::uint64_t>(m_cpu));
            sample.run[RunMetric::disk_written] = Reading::of(m_written);
            m_time += gpu_time_between(1s, sample.gpus);
            sample.gpu_time = m_time;
            m_samples.push_back(sample);
        }
        return *this;
    }
    /// Adds time without samples.
    Node& is_silent(std::chrono::seconds time)
    {
        m_elapsed += time;
        return *this;
    }
    void into(Profiler& profiler, std::size_t link = 0) const
    {
        profiler.add(link, m_header, m_samples);
    }
    const GpuTime& time() const { return m_time; }

private:
    SampleHeader m_header;
    std::vector<Sample> m_samples;
    milliseconds m_elapsed{0};
    GpuTime m_time;
    double m_cpu = 0;
    std::uint64_t m_written = 0;
};

ProfiledLink link(int number, Time from, std::chrono::seconds length)
{
    return {LinkNumber{number}, from, from + length, {}, {}};
}

Profile profile_of(const Node& node, ProfiledLink one, int gpus = 1)
{
    Profiler profiler({std::move(one)}, gpus);
    node.into(profiler);
    return profiler.take();
}

milliseconds time_in(const Profile& profile, Phase phase)
{
    return profile.phases[static_cast<std::size_t>(phase)];
}

const std::vector<std::optional<double>>& course(const Track& track, Measure measure)
{
    return track.course[static_cast<std::size_t>(measure)];
}

TEST(Phases, SplitTheGpuTimeByWhatElseWorks)
{
    Node node(k_begin);
    node.then_runs(20s, 0, 1).then_runs(40s, 100).then_runs(30s, 0, 3).then_runs(40s, 0);
    const Profile profile = profile_of(node, link(1, k_begin, 130s));
    EXPECT_EQ(time_in(profile, Phase::start_up), 20s);
    EXPECT_EQ(time_in(profile, Phase::busy), 40s);
    // Rates are computed over ten seconds: the end of the work is detected late.
    EXPECT_NEAR(static_cast<double>(time_in(profile, Phase::waiting) / 1s), 37, 3);
    EXPECT_NEAR(static_cast<double>(time_in(profile, Phase::other_idle) / 1s), 33, 3);
    EXPECT_EQ(time_in(profile, Phase::unknown), 0s);
}

TEST(Phases, ASecondIsSplitByHowMuchOfItTheGpuWasBusy)
{
    Node node(k_begin);
    node.then_runs(100s, 30, 4);
    const Profile profile = profile_of(node, link(1, k_begin, 100s));
    EXPECT_EQ(time_in(profile, Phase::busy), 30s);
    EXPECT_EQ(time_in(profile, Phase::waiting), 69'300ms); // the first rate needs two samples
    EXPECT_EQ(time_in(profile, Phase::other_idle), 700ms);
}

TEST(Phases, WritingShortlyBeforeACheckpointIsSaving)
{
    Node node(k_begin);
    node.then_runs(60s, 100)
        .then_runs(30s, 0, 1, 50 * k_mib)
        .then_runs(60s, 100)
        .then_runs(30s, 0, 1, 50 * k_mib);
    ProfiledLink one = link(1, k_begin, 180s);
    one.saves = {k_begin + 90s}; // no checkpoint at the end
    const Profile profile = profile_of(node, one);
    EXPECT_EQ(time_in(profile, Phase::saving), 30s);
    EXPECT_EQ(time_in(profile, Phase::waiting) + time_in(profile, Phase::other_idle), 30s);
}

TEST(Phases, AreAllUnknownWithoutADriver)
{
    Node node(k_begin);
    node.then_runs(60s, {}, 2);
    const Profile profile = profile_of(node, link(1, k_begin, 60s));
    EXPECT_EQ(time_in(profile, Phase::unknown), 60s);
    EXPECT_EQ(profile[Measure::busy].known, 0);
    EXPECT_EQ(profile[Measure::busy].why(), Unknown::no_driver);
    EXPECT_NEAR(profile[Measure::cpu].mean(), 2, 1e-9);
    EXPECT_FALSE(course(profile.gpus[0], Measure::busy)[5]);
}

TEST(Phases, AddUpToTheTotal)
{
    PhaseTimes phases{};
    phases[static_cast<std::size_t>(Phase::start_up)] = 10s;
    phases[static_cast<std::size_t>(Phase::waiting)] = 25s;
    phases[static_cast<std::size_t>(Phase::other_idle)] = 90s;
    for (const GpuTime total :
         {GpuTime{50s, 30s, 5s}, GpuTime{50s, 40s, 0s}, GpuTime{1s, 5s, 9s}}) {
        const PhaseTimes all = phases_of(phases, total);
        milliseconds sum{0};
        for (const auto part : all) {
            EXPECT_GE(part, 0s);
            sum += part;
        }
        EXPECT_EQ(sum, total.allocated());
        EXPECT_EQ(all[static_cast<std::size_t>(Phase::busy)], total.busy);
        EXPECT_EQ(all[static_cast<std::size_t>(Phase::unknown)], total.unknown);
    }
}

TEST(Profile, AMissingSampleIsAGapAndNever0)
{
    Node node(k_begin);
    node.then_runs(60s, 80, 1).is_silent(100s).then_runs(60s, 80, 1);
    const Profile profile = profile_of(node, link(1, k_begin, 220s));
    ASSERT_EQ(profile.step, 1s);
    const auto& busy = course(profile.gpus[0], Measure::busy);
    ASSERT_EQ(busy.size(), 220U);
    EXPECT_EQ(busy[30], 80);
    EXPECT_EQ(busy[100], std::nullopt);
    EXPECT_EQ(busy[200], 80);
    EXPECT_NEAR(profile[Measure::busy].known, 120, 0.1);
    EXPECT_NEAR(profile[Measure::busy].least, 80, 1e-9);
    const PhaseTimes& silent = profile.phase_course[100];
    EXPECT_EQ(silent[static_cast<std::size_t>(Phase::unknown)], 1s);
    EXPECT_EQ(silent[static_cast<std::size_t>(Phase::other_idle)], 0s);
}

TEST(Profile, ASuspendedJobTellsNothingOfTheTimeItWasSuspended)
{
    Sample sample;
    Profiler profiler({link(1, k_begin, 1000s)}, 1);
    sample.gpus = {GpuSample::unknown(Unknown::not_supported)};
    sample.gpus[0][GpuMetric::busy] = Reading::of(10'000);
    sample.at = k_begin + 900s;
    sample.elapsed = sample.stands_for = 900s;
    sample.gpu_time = gpu_time_between(900s, sample.gpus);
    profiler.add(0, {k_begin, "n", {GpuName{}}}, {sample});
    const Profile profile = profiler.take();
    EXPECT_NEAR(profile[Measure::busy].known, 2.5, 1e-9);
}

TEST(Profile, LinksOfAChainGoOnWithAGapBetween)
{
    Node first(k_begin), second(k_begin + 300s, 1, "node2");
    first.then_runs(100s, 100);
    second.then_runs(100s, 50);
    Profiler profiler({link(1, k_begin, 100s), link(2, k_begin + 300s, 100s)}, 1);
    first.into(profiler, 0);
    second.into(profiler, 1);
    const Profile profile = profiler.take();
    ASSERT_EQ(profile.gpus.size(), 1U); // the same GPU of the run, though on another device
    EXPECT_EQ(profile.gpus[0].nodes, (std::vector<std::string>{"node1", "node2"}));
    EXPECT_EQ(profile.to - profile.from, 400s);
    const auto& busy = course(profile.gpus[0], Measure::busy);
    EXPECT_EQ(profile.step, 2s);
    EXPECT_EQ(busy[10], 100);
    EXPECT_EQ(busy[100], std::nullopt);
    EXPECT_EQ(busy[170], 50);
    EXPECT_EQ(profile.links[1].nodes, std::vector<std::string>{"node2"});
    // Nothing was allocated between the links.
    for (const auto part : profile.phase_course[100]) {
        EXPECT_EQ(part, 0s);
    }
}

TEST(Profile, NodesAndGpusAreTracksOfTheirOwn)
{
    Node first(k_begin, 2, "a"), second(k_begin, 2, "b");
    first.then_runs(60s, 100);
    second.then_runs(60s, 20);
    Profiler profiler({link(1, k_begin, 60s)}, 4);
    first.into(profiler);
    second.into(profiler);
    const Profile profile = profiler.take();
    ASSERT_EQ(profile.gpus.size(), 4U);
    ASSERT_EQ(profile.nodes.size(), 2U);
    EXPECT_EQ(profile.nodes[1].cores, 4);
    EXPECT_NEAR(profile[Measure::busy].mean(), 60, 1e-9);
    EXPECT_NEAR(profile.quantiles[static_cast<std::size_t>(Measure::busy)].at(0.95).value_or(0),
                100, 1e-9);
    EXPECT_EQ(time_in(profile, Phase::busy), 144s);
}

TEST(Profile, ManyGpusCountButHaveNoCurves)
{
    Profiler profiler({link(1, k_begin, 60s)}, 240);
    for (int i = 0; i < 10; ++i) {
        Node node(k_begin, 24, "n" + std::to_string(i));
        node.then_runs(60s, 50).into(profiler);
    }
    const Profile profile = profiler.take();
    EXPECT_EQ(profile.gpus.size(), k_most_tracks);
    EXPECT_NEAR(profile[Measure::busy].known, 240 * 60, 1);
}

TEST(Profile, ALongRunHasNoMoreStepsThanAShortOne)
{
    const Profile profile = Profiler({link(1, k_begin, 30 * 24h)}, 1).take();
    EXPECT_LE(profile.phase_course.size(), static_cast<std::size_t>(k_most_steps));
    EXPECT_FALSE(profile.has_samples());
    const Profile none = Profiler({link(1, k_begin, 0s)}, 1).take();
    EXPECT_EQ(none.phase_course.size(), 1U);
}

TEST(Profile, AFileThatLiesHarmsNothing)
{
    Sample sample;
    sample.at = k_begin + 24h * 365 * 150;
    sample.elapsed = sample.stands_for = 24h * 365 * 150;
    sample.gpu_time = {24h * 365 * 150, 24h * 365 * 150, 24h * 365 * 150};
    sample.gpus = {GpuSample::unknown(Unknown::lost)};
    Sample before = sample;
    before.at = Time{};
    Profiler profiler({link(1, k_begin, 60s)}, 1);
    profiler.add(0, {k_begin, "n", {}}, {before, sample, before});
    for (const auto& step : profiler.take().phase_course) {
        for (const auto part : step) {
            EXPECT_GE(part, 0s);
        }
    }
}

TEST(Quantiles, StayNearlyExactWhenThereAreMany)
{
    Quantiles quantiles;
    EXPECT_EQ(quantiles.at(0.5), std::nullopt);
    for (int i = 0; i < 100'000; ++i) {
        quantiles.add((i * 7919) % 100'000, 1);
    }
    EXPECT_NEAR(*quantiles.at(0.95), 95'000, 500);
    EXPECT_NEAR(*quantiles.at(0.5), 50'000, 500);
}

} // namespace
} // namespace gpuq::telemetry
