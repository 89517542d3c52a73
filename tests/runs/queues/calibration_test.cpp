// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/calibration.h"

#include "fakes/now.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

StartForecasts by(std::uint32_t id, Time p50, Time p90)
{
    return {{JobId{id}, StartForecast{p50, p90, ""}}};
}

Job pending(std::uint32_t id)
{
    Job job;
    job.id = JobId{id};
    job.state = JobState::pending;
    return job;
}

Job started(std::uint32_t id, Time at)
{
    Job job = pending(id);
    job.state = JobState::running;
    job.started_at = at;
    job.nodes = "n0";
    return job;
}

TEST(Calibration, RaisesThePartOfAForecastThatAJobMisses)
{
    Calibration found;
    note_forecasts(found, by(1, k_now + 1h, k_now + 2h), k_now);
    compare_starts(found, {pending(1)}, k_now + 59min);
    EXPECT_EQ(found.p50, 0.5) << "its time has not come";
    compare_starts(found, {pending(1)}, k_now + 61min);
    EXPECT_GT(found.p50, 0.5);
    EXPECT_EQ(found.p90, 0.9);
    compare_starts(found, {started(1, k_now + 119min)}, k_now + 121min);
    EXPECT_LT(found.p90, 0.9);
    EXPECT_TRUE(found.checks.empty());
}

TEST(Calibration, RemembersAStartOfAJobThatHasLeftTheQueue)
{
    Calibration found;
    note_forecasts(found, by(1, k_now + 1h, k_now + 2h), k_now);
    compare_starts(found, {started(1, k_now + 10min)}, k_now + 11min);
    EXPECT_EQ(found.p50, 0.5) << "early starts must not be counted before late ones";
    compare_starts(found, {}, k_now + 3h);
    EXPECT_LT(found.p50, 0.5);
    EXPECT_LT(found.p90, 0.9);
}

TEST(Calibration, IgnoresAJobThatDisappeared)
{
    Calibration found;
    note_forecasts(found, by(1, k_now + 1h, k_now + 2h), k_now);
    compare_starts(found, {pending(2)}, k_now + 3h);
    EXPECT_EQ(found.p50, 0.5);
    EXPECT_TRUE(found.checks.empty());
}

TEST(Calibration, NotesAFewForecastsAnHour)
{
    StartForecasts forecasts;
    for (std::uint32_t id = 1; id <= 1000; ++id) {
        forecasts.merge(by(id, k_now + 1h, k_now + 1000h));
    }
    Calibration found;
    note_forecasts(found, forecasts, k_now);
    const std::size_t each = found.checks.size();
    EXPECT_LT(each, 10U);
    note_forecasts(found, forecasts, k_now + 59min);
    EXPECT_EQ(found.checks.size(), each);
    for (int hour = 1; hour < 1000; ++hour) {
        note_forecasts(found, forecasts, k_now + std::chrono::hours(hour));
    }
    EXPECT_GT(found.checks.size(), 10 * each);
    EXPECT_LT(found.checks.size(), 1000U) << "the cache stays small";
    Calibration none;
    note_forecasts(none, {{JobId{1}, StartForecast{k_now, k_now, ""}}}, k_now);
    EXPECT_TRUE(none.checks.empty()) << "it starts at once";
}

/// Simulated waits are uniform from 0 to 100 minutes; in truth none is shorter than 10 minutes.
TEST(Calibration, LetsHalfAndNineTenthsStartByTheirForecastsInTheLongRun)
{
    std::mt19937_64 random(1);
    Calibration found;
    double by_p50 = 0;
    double by_p90 = 0;
    const int count = 4000;
    for (int i = 1; i <= count; ++i) {
        const Time now = k_now + i * 4h;
        const auto id = static_cast<std::uint32_t>(i);
        const auto at = [&](double part) {
            return now + std::chrono::seconds(static_cast<int>(6000 * part));
        };
        const double wait = std::uniform_real_distribution<double>(0.1, 1.0)(random);
        by_p50 += wait <= found.p50 ? 1 : 0;
        by_p90 += wait <= found.p90 ? 1 : 0;
        note_forecasts(found, by(id, at(found.p50), at(found.p90)), now);
        compare_starts(found, {started(id, at(wait))}, now + 3h);
    }
    EXPECT_NEAR(by_p50 / count, 0.5, 0.02);
    EXPECT_NEAR(by_p90 / count, 0.9, 0.02);
}

} // namespace
} // namespace gpuq
