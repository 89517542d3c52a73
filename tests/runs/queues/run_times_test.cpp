// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/run_times.h"

#include "fakes/now.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

Job running(std::chrono::minutes since, std::chrono::minutes limit)
{
    Job job;
    job.state = JobState::running;
    job.walltime = limit;
    job.started_at = k_now - since;
    job.ends_at = *job.started_at + limit;
    return job;
}

Job ended(std::chrono::minutes ran, std::chrono::minutes limit, std::chrono::seconds ago = 10s)
{
    Job job = running(ran, limit);
    job.state = JobState::completed;
    job.ends_at = k_now - ago;
    job.started_at = *job.ends_at - ran;
    return job;
}

/// The oldest one that Slurm shows, so that it is known how long it keeps them.
const Job k_oldest = ended(9min, 10min, 5min);

double exposure(const RunTimes& times)
{
    double sum = 0;
    for (const RunTimes::Table& table : times.tables) {
        for (const RunTimes::Interval& interval : table) {
            sum += interval.exposure;
        }
    }
    return sum;
}

/// The parts of their limits that a thousand short jobs with one GPU use, each in another possible
/// truth.
std::vector<double> drawn(const RunTimes& times, double elapsed)
{
    std::mt19937_64 random(1);
    std::vector<double> parts;
    for (int truth = 0; truth < 1000; ++truth) {
        parts.push_back(UseOfLimits(times, random).draw(0, elapsed, random));
    }
    std::sort(parts.begin(), parts.end());
    return parts;
}

TEST(RunTimes, CountJobsThatEndedAndTheTimeThatJobsRanThrough)
{
    RunTimes times;
    observe(times, {ended(30min, 60min), running(10min, 100min), k_oldest}, k_now);
    EXPECT_EQ(times.ended(), 1);
    const RunTimes::Table& table = times.tables[RunTimes::kind_of(60min, 0)];
    EXPECT_EQ(table[7].ended, 0); // up to, and without, one half
    EXPECT_EQ(table[8].ended, 1);
    EXPECT_NEAR(exposure(times), (5 - 1.0 / 6) / 60 + 0.05, 1e-9) << "in the last five minutes";
    EXPECT_EQ(times.until, k_now);
}

TEST(RunTimes, CountNothingTwice)
{
    RunTimes times;
    observe(times, {ended(30min, 60min), running(10min, 100min), k_oldest}, k_now);
    const RunTimes before = times;
    observe(times, {ended(30min, 60min), running(10min, 100min), k_oldest}, k_now);
    EXPECT_EQ(times, before);
    observe(times, {ended(30min, 60min)}, k_now - 1min); // the clock was set back
    EXPECT_EQ(times.ended(), 1);
}

TEST(RunTimes, LeaveOutJobsWithoutLimitOrStart)
{
    Job pending;
    pending.state = JobState::pending;
    pending.walltime = 60min;
    Job without_limit = running(10min, 60min);
    without_limit.walltime.reset();
    Job never_started = ended(0min, 60min);
    never_started.started_at.reset();
    RunTimes times;
    observe(times, {pending, without_limit, never_started, ended(1min, 60min, 20min)}, k_now);
    EXPECT_EQ(times.ended(), 0);
    EXPECT_EQ(exposure(times), 0);
}

TEST(RunTimes, DoNotTakeAMinJobAgeThatWasNotSeen)
{
    RunTimes times; // Slurm may forget ended jobs after two seconds
    observe(times, {running(10min, 60min)}, k_now);
    EXPECT_EQ(exposure(times), 0);
    observe(times, {running(10min, 60min), ended(1min, 60min, 2min)}, k_now + 1min);
    EXPECT_EQ(times.kept, 3min);
}

TEST(RunTimes, AreThoseOfKindsOfJobs)
{
    EXPECT_EQ(RunTimes::kind_of(10min, 1), RunTimes::kind_of(0min, 0));
    EXPECT_NE(RunTimes::kind_of(10min, 1), RunTimes::kind_of(11min, 1));
    EXPECT_EQ(RunTimes::kind_of(1h, 1), RunTimes::kind_of(31min, 1));
    EXPECT_NE(RunTimes::kind_of(1h, 1), RunTimes::kind_of(1h, 2));
    EXPECT_NE(RunTimes::kind_of(1h, 1), RunTimes::kind_of(2h, 1));
    EXPECT_EQ(RunTimes::kind_of(9999h, 999), RunTimes().tables.size() - 1);
}

TEST(RunTimes, ForgetSlowly)
{
    RunTimes times;
    observe(times, {ended(30min, 60min), k_oldest}, k_now);
    observe(times, {}, k_now + 14 * 24h);
    EXPECT_NEAR(times.ended(), 0.5, 1e-6);
}

TEST(RunTimes, CompareTheLastDayWithWhatWasExpected)
{
    RunTimes times;
    observe(times, {running(60min, 100h), ended(30min, 60min), ended(60min, 60min), k_oldest},
            k_now);
    const RunTimes::Recent& day_long = times.recent[RunTimes::kind_of(100h, 1)];
    EXPECT_EQ(day_long.ended, 0);
    EXPECT_GT(day_long.expected, 0);
    EXPECT_LT(day_long.expected, 0.1);
    const RunTimes::Recent& hour_long = times.recent[RunTimes::kind_of(60min, 1)];
    EXPECT_EQ(hour_long.ended, 1) << "the other one reached its limit";
    observe(times, {}, k_now + 24h);
    EXPECT_NEAR(hour_long.ended, 0.5, 1e-6);
}

TEST(UseOfLimits, FollowsTheLastDay)
{
    RunTimes times;
    const auto half = [&] { return drawn(times, 0)[500]; };
    const double before = half();
    times.recent[0] = {50, 10};
    EXPECT_LT(half(), before / 2) << "they end five times as fast";
    times.recent[0] = {2, 10};
    EXPECT_EQ(half(), 1) << "most of them reach their limits";
    times.recent[0] = {};
    times.recent[1] = {2, 10};
    EXPECT_NEAR(half(), before, 0.1) << "another kind";
}

TEST(UseOfLimits, OfAKindThatWasNotSeenIsThatOfTheSameLimit)
{
    RunTimes times; // with one GPU, ten thousand short jobs end at once, and a hundred long ones
                    // reach their limits
    times.tables[RunTimes::kind_of(10min, 1)][0] = {10000, 0.003};
    for (std::size_t i = 0; i < RunTimes::k_bounds.size(); ++i) {
        times.tables[RunTimes::kind_of(48h, 1)][i].exposure =
            100 * (RunTimes::k_bounds[i] - (i == 0 ? 0 : RunTimes::k_bounds[i - 1]));
    }
    std::mt19937_64 random(1);
    double short_job = 0;
    double long_job = 0;
    for (int truth = 0; truth < 100; ++truth) {
        const UseOfLimits use(times, random);
        short_job += use.draw(RunTimes::kind_of(10min, 8), 0, random) / 100;
        long_job += use.draw(RunTimes::kind_of(48h, 8), 0, random) / 100;
    }
    EXPECT_LT(short_job, 0.3);
    EXPECT_GT(long_job, 0.8);
}

TEST(UseOfLimits, FollowsTheGeneralPatternUntilJobsWereSeen)
{
    const std::vector<double> parts = drawn({}, 0);
    EXPECT_GT(parts[250], 0.01);
    EXPECT_LT(parts[250], 0.15);
    EXPECT_NEAR(parts[500], 0.5, 0.2);
    EXPECT_GE(std::count(parts.begin(), parts.end(), 1.0), 70);
    EXPECT_LE(std::count(parts.begin(), parts.end(), 1.0), 450);
}

TEST(UseOfLimits, FollowsTheJobsThatWereSeen)
{
    RunTimes times; // a thousand jobs: all of them end at about half of their limits
    RunTimes::Table& table = times.tables[0];
    for (std::size_t i = 0; RunTimes::k_bounds[i] < 0.5; ++i) {
        table[i].exposure =
            1000 * (RunTimes::k_bounds[i] - (i == 0 ? 0 : RunTimes::k_bounds[i - 1]));
    }
    table[7] = {1000, 75};
    const std::vector<double> parts = drawn(times, 0);
    EXPECT_GT(parts[100], 0.3);
    EXPECT_NEAR(parts[500], 0.5, 0.1);
    std::mt19937_64 random(1);
    const UseOfLimits use(times, random);
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
        sum += use.draw(RunTimes::kind_of(24h, 8), 0, random);
    }
    EXPECT_NEAR(sum / 100, 0.4, 0.2) << "those of another kind are thought to be alike";
}

TEST(UseOfLimits, OfAJobThatRunsIsMoreThanItHasUsed)
{
    const std::vector<double> parts = drawn({}, 0.5);
    EXPECT_GE(parts.front(), 0.5);
    EXPECT_GT(parts[500], 0.7);
    EXPECT_EQ(parts.back(), 1);
    std::mt19937_64 random(1);
    EXPECT_EQ(UseOfLimits({}, random).draw(0, 1.2, random), 1);
}

} // namespace
} // namespace gpuq
