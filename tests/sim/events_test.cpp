// SPDX-License-Identifier: GPL-2.0-or-later
// Hours that open and close, and nodes that fail, during a simulation.
#include "sim/at.h"
#include "sim/outages.h"
#include "sim/small_machine.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace gpuq::sim::small {
namespace {

using testing::ElementsAre;

/// Day and night on one node with four GPUs: by day the limit is two hours.
Machine with_nights()
{
    Machine machine = one_partition(1, 4);
    machine.hours.resize(2);
    machine.qos.push_back({.name = "few", .gpus_per_user = 1});
    machine.partitions[0].qos = 0;
    machine.partitions[0].max_time = 2h;
    for (Hours& hours : machine.hours) {
        hours = {machine.partitions, machine.qos};
    }
    machine.hours[1].partitions[0].max_time = 24h;
    machine.hours[1].qos[0].gpus_per_user = 4;
    machine.changes = {{12h, 1}, {24h, 0}};
    return machine;
}

/// Two partitions of a node each; the first closes after ten hours, with a notice of ten minutes,
/// and opens again ten hours later.
Machine closing()
{
    Machine machine = one_partition(2, 4);
    machine.partitions[0].nodes = {0};
    machine.partitions.push_back({.name = "other", .nodes = {1}, .max_time = 48h});
    machine.partitions[0].notice = 10min;
    machine.hours = {{machine.partitions, {}}, {machine.partitions, {}}};
    machine.hours[1].partitions[0].closed = true;
    machine.changes = {{10h, 1}, {20h, 0}};
    return machine;
}

Seconds of_first_start(const Machine& machine, const std::vector<Job>& jobs)
{
    return course_of(machine, jobs).outcomes.back().start;
}

TEST(HoursChange, AJobThatIsTooLongForTheDayWaitsForTheNight)
{
    EXPECT_EQ(of_first_start(with_nights(), {job(1, 0s, 1h, 1)}), 0s);
    EXPECT_EQ(of_first_start(with_nights(), {job(1, 0s, 3h, 1)}), 12h);
    EXPECT_EQ(of_first_start(with_nights(), {job(1, 13h, 3h, 1)}), 13h);
    const Course never = course_of(with_nights(), {job(1, 0s, 30h, 1)});
    EXPECT_EQ(never.outcomes[0].ending, Ending::refused) << "too long for any hours";
    const Course late = course_of(with_nights(), {job(1, 25h, 3h, 1)});
    EXPECT_EQ(late.outcomes[0].ending, Ending::waiting) << "no other night is known";
}

TEST(HoursChange, AJobThatIsHeldBlocksNoOther)
{
    const Course course = course_of(with_nights(), {job(1, 0s, 3h, 4), job(2, 60s, 1h, 1)});
    EXPECT_THAT(starts(course), ElementsAre(12 * 3600, 60));
}

TEST(HoursChange, LimitsAreThoseOfTheMoment)
{
    const Course course =
        course_of(with_nights(), {job(1, 11h, 2h, 1), job(2, 11h, 2h, 1), job(3, 11h, 2h, 2)});
    EXPECT_THAT(starts(course), ElementsAre(11 * 3600, 12 * 3600, 12 * 3600));
}

TEST(HoursChange, NoJobStartsInAClosedPartition)
{
    EXPECT_EQ(of_first_start(closing(), {job(1, 10h, 1h, 1)}), 20h);
    Job both = job(1, 10h, 1h, 1);
    both.partitions = {0, 1};
    EXPECT_EQ(of_first_start(closing(), {both}), 10h);
    both.submit = 9h;
    Job first = job(1, 8h, 13h, 4);
    first.partitions = {1};
    both.id = 2;
    both.gpus = 4;
    EXPECT_EQ(of_first_start(closing(), {first, both}), 9h) << "on the node that is still open";
}

TEST(HoursChange, RunningJobsLeaveAPartitionThatClosesAfterTheNotice)
{
    Job chained = job(2, 9h, 4h, 1);
    chained.chain = Chain{.limit = 8h, .partitions = {1}, .gap = 2s, .lost = 60s};
    const Course course = course_of(closing(), {job(1, 9h, 4h, 1), chained, job(3, 9h, 65min, 1)});
    EXPECT_EQ(course.outcomes[0].ending, Ending::timed_out);
    EXPECT_EQ(course.outcomes[0].end, 10h + 10min);
    EXPECT_EQ(course.outcomes[1].ending, Ending::completed);
    EXPECT_EQ(course.outcomes[1].links, 2);
    EXPECT_EQ(course.outcomes[1].end, 13h + 60s + 2s) << "on the other node";
    EXPECT_EQ(course.outcomes[2].ending, Ending::completed) << "within the notice";
    EXPECT_EQ(course.outcomes[2].end, 10h + 5min);
}

TEST(HoursChange, AJobThatEndsEarlierGivesItsMinutesBack)
{
    Machine machine = closing();
    machine.qos.push_back({.name = "ahead", .gpu_minutes_per_user = 600});
    for (Hours& hours : machine.hours) {
        hours.qos = machine.qos;
        hours.partitions[0].qos = 0;
        hours.partitions[1].qos = 0;
    }
    machine.partitions = machine.hours[0].partitions;
    Job other = job(2, 9h, 9h, 1);
    other.partitions = {1};
    // Until 10:00 the first job may still need more than an hour.
    EXPECT_EQ(of_first_start(machine, {job(1, 9h, 9h, 1), other}), 10h);
}

TEST(HoursChange, TheSimulationEndsWithItsJobs)
{
    Machine machine = with_nights();
    for (int day = 2; day < 4000; ++day) {
        machine.changes.push_back({day * 12h, static_cast<std::size_t>(day % 2)});
    }
    EXPECT_LT(course_of(machine, {job(1, 0s, 1h, 1)}).effort.main_passes, 10);
}

TEST(HoursChange, AMachineWithOtherPartitionsIsRefused)
{
    Machine machine = closing();
    machine.hours[1].partitions.pop_back();
    EXPECT_FALSE(simulate(machine, {}));
    machine = closing();
    machine.hours[1].partitions[0].tier = 7;
    EXPECT_FALSE(simulate(machine, {}));
    machine = closing();
    machine.changes[1].hours = 2;
    EXPECT_FALSE(simulate(machine, {}));
    machine = closing();
    std::reverse(machine.changes.begin(), machine.changes.end());
    EXPECT_FALSE(simulate(machine, {}));
}

TEST(Outage, APlainJobStartsOverOnAnotherNode)
{
    Machine machine = one_partition(2, 4);
    machine.outages = {{0, 1h, 5h}};
    const Course course = course_of(machine, {job(1, 0s, 2h, 4)});
    ASSERT_EQ(course.pieces.size(), 2U);
    EXPECT_THAT(course.pieces[0].nodes, ElementsAre(0));
    EXPECT_EQ(course.pieces[0].end, 1h);
    EXPECT_THAT(course.pieces[1].nodes, ElementsAre(1));
    EXPECT_EQ(course.pieces[1].start, 1h + machine.settings.timing.requeue_delay);
    EXPECT_EQ(course.pieces[1].end - course.pieces[1].start, 2h);
    EXPECT_EQ(course.outcomes[0].failed, 1);
    EXPECT_EQ(course.outcomes[0].preempted, 0);
    EXPECT_EQ(course.outcomes[0].ending, Ending::completed);
}

TEST(Outage, AChainLosesTheWorkSinceItsLastCheckpoint)
{
    Machine machine = one_partition(1, 4);
    machine.outages = {{0, 100min, 110min}};
    Job chained = job(1, 0s, 4h, 1);
    chained.chain = Chain{.limit = 8h, .partitions = {0}, .gap = 2s, .lost = 60s, .saves = 30min};
    Course course = course_of(machine, {chained});
    EXPECT_EQ(course.outcomes[0].links, 2);
    EXPECT_EQ(course.pieces[1].start, 110min) << "when the node returns";
    EXPECT_EQ(course.pieces[1].end - course.pieces[1].start, 4h - 90min + 60s);
    chained.chain->saves = 0s;
    course = course_of(machine, {chained});
    EXPECT_EQ(course.pieces[1].end - course.pieces[1].start, 4h) << "nothing was saved";
}

TEST(Outage, OverlappingOnesLastUntilTheLastOfThem)
{
    Machine machine = one_partition(1, 1);
    machine.outages = {{0, 1h, 3h}, {0, 2h, 5h}};
    EXPECT_EQ(of_first_start(machine, {job(1, 2h, 1h, 1)}), 5h);
}

TEST(Outage, DuringOtherHours)
{
    Machine machine = closing();
    machine.outages = {{1, 11h, 12h}};
    Job chained = job(1, 9h, 4h, 1);
    chained.chain = Chain{.limit = 8h, .partitions = {0, 1}, .gap = 2s, .lost = 60s};
    const Course course = course_of(machine, {chained});
    // Ten minutes after the first partition has closed it goes to the other one, whose node fails.
    ASSERT_EQ(course.pieces.size(), 3U);
    EXPECT_EQ(course.pieces[0].end, 10h + 10min);
    EXPECT_EQ(course.pieces[1].partition, 1);
    EXPECT_EQ(course.pieces[1].end, 11h);
    EXPECT_EQ(course.pieces[2].partition, 1);
    EXPECT_EQ(course.pieces[2].start, 12h);
    EXPECT_EQ(course.pieces[2].end, 12h + 4h - 70min + 60s);
}

TEST(Outage, OccurAsOftenAsStatedAndAlwaysTheSame)
{
    const Machine machine = one_partition(50, 4);
    const auto outages = outages_of(machine, {.every = 240h, .down = 4h}, 24h * 365);
    const double expected = 50 * 365 * 24 / 244.0;
    EXPECT_NEAR(static_cast<double>(outages.size()), expected, expected / 10);
    const auto fewer = outages_of(one_partition(10, 8), {.every = 240h, .down = 4h}, 24h * 365);
    ASSERT_LT(fewer.size(), outages.size());
    for (std::size_t i = 0; i < fewer.size(); ++i) {
        EXPECT_EQ(fewer[i].node, outages[i].node);
        EXPECT_EQ(fewer[i].start, outages[i].start);
        EXPECT_EQ(fewer[i].end - fewer[i].start, 4h);
    }
}

class HoursAndOutages : public ::testing::TestWithParam<unsigned> {};

/// Generated weeks on three partitions of which two close every night, with failures.
TEST_P(HoursAndOutages, LeaveNoJobWhereNoneMayBe)
{
    Machine machine = one_partition(6, 4);
    machine.partitions[0].tier = 10;
    machine.partitions.push_back(
        {.name = "lent", .nodes = {0, 1, 2}, .max_time = 6h, .tier = 4, .notice = 5min});
    machine.partitions.push_back({.name = "day", .nodes = {4, 5}, .max_time = 48h, .tier = 20});
    machine.partitions[2].notice = 30min;
    machine.partitions[1].preempt = Preempt::requeue;
    machine.settings.preempts = true;
    machine.settings.weights = {.age = 1000, .fair_share = 10000};
    machine.hours = {{machine.partitions, {}}, {machine.partitions, {}}};
    machine.hours[1].partitions[1].closed = true;
    machine.hours[1].partitions[2].closed = true;
    for (int i = 1; i < 400; ++i) {
        machine.changes.push_back({i * 12h, static_cast<std::size_t>(i % 2)});
    }
    machine.outages = outages_of(machine, {.every = 20h, .down = 2h}, 2000h);
    std::vector<Job> jobs = busy_week(GetParam(), 300, 8);
    for (Job& made : jobs) {
        made.partitions =
            made.limit <= 6h && made.gpus <= 4 ? std::vector{0, 1, 2} : std::vector{0};
        if (made.id % 3 == 0) {
            made.chain =
                Chain{.limit = 6h, .partitions = {2, 0}, .gap = 2s, .lost = 60s, .saves = 10min};
        }
    }
    const Course course = course_of(machine, jobs);
    EXPECT_EQ(course, course_of(machine, jobs));
    const auto is_closed = [&](const Piece& piece, Seconds time) {
        return piece.partition != 0 && time / 12h % 2 == 1;
    };
    for (const Piece& piece : course.pieces) {
        EXPECT_FALSE(is_closed(piece, piece.start));
        if (piece.partition != 0) { // the night after its start
            const Seconds closes = (piece.start / 24h) * 24h + 12h;
            EXPECT_LE(piece.end, closes + machine.partitions[at(piece.partition)].notice + 60s);
        }
        for (const Outage& outage : machine.outages) {
            const bool overlaps = piece.start < outage.end && outage.start < piece.end;
            EXPECT_FALSE(overlaps &&
                         std::count(piece.nodes.begin(), piece.nodes.end(), outage.node) > 0);
        }
    }
    std::size_t failed = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Outcome& outcome = course.outcomes[i];
        EXPECT_TRUE(outcome.ending == Ending::completed || outcome.ending == Ending::timed_out)
            << i;
        failed += outcome.failed > 0 ? 1 : 0;
    }
    EXPECT_GT(failed, 5U);
    for (const Piece& piece : course.pieces) {
        std::vector<int> used(machine.nodes.size());
        for (const Piece& other : course.pieces) {
            for (std::size_t i = 0; i < other.nodes.size(); ++i) {
                const bool runs = other.start <= piece.start && piece.start < other.end;
                used[at(other.nodes[i])] += runs ? other.gpus[i] : 0;
            }
        }
        EXPECT_LE(*std::max_element(used.begin(), used.end()), 4);
    }
}

INSTANTIATE_TEST_SUITE_P(Weeks, HoursAndOutages, ::testing::Values(1U, 2U, 3U));

} // namespace
} // namespace gpuq::sim::small
