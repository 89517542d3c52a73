// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/tuning.h"

#include "tune/parallel.h"
#include "tune/small_site.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace gpuq::tune::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Effort effort(std::size_t most)
{
    Effort effort;
    effort.most = most;
    return effort;
}

TEST(Tuning, FindsTheNumberThatHoldsTheTarget)
{
    const Problem made = problem();
    const Tuning tuning = *tune(made, {}, effort(60));
    ASSERT_NE(tuning.recommended(), nullptr);
    const Choice& choice = *tuning.recommended();
    EXPECT_THAT(choice.text, HasSubstr("nodes: n[1-2]        # for short runs\n"));
    EXPECT_LE(choice.searched[0], 10min);
    EXPECT_LE(choice.unseen[0], 10min);
    EXPECT_EQ(choice.held, (std::vector<int>{1, 1}));
    EXPECT_EQ(tuning.held, (std::vector<int>{0, 1}));
    EXPECT_LE(tuning.simulations, 60U);
    EXPECT_FALSE(tuning.interrupted);
}

TEST(Tuning, AnInterruptedSearchContinuesToTheSameResult)
{
    const Problem made = problem();
    Known known;
    std::size_t simulated = 0;
    Effort some = effort(40);
    some.record = [&](std::uint64_t hash, const std::vector<Seconds>& waits) {
        ++simulated;
        const auto record = parse_record(record_of(hash, waits));
        ASSERT_TRUE(record);
        known.insert(*record);
    };
    some.is_over = [&] { return simulated >= 12; };
    EXPECT_TRUE(tune(made, {}, some)->interrupted);
    const std::size_t before = simulated;
    EXPECT_LT(before, 30U);
    some.is_over = nullptr;
    const Known at_first = known;
    const Tuning continued = *tune(made, at_first, some);
    const Tuning whole = *tune(made, {}, effort(40));
    EXPECT_FALSE(continued.interrupted);
    ASSERT_EQ(continued.choices.size(), whole.choices.size());
    EXPECT_EQ(continued.choices[0].text, whole.choices[0].text);
    EXPECT_EQ(continued.choices[0].unseen, whole.choices[0].unseen);
    EXPECT_EQ(simulated, whole.simulations - 1) << "each once; the policy as it is was known";
}

TEST(Tuning, AChoiceThatIsWorseInTheUnseenWeeksIsNotRecommended)
{
    Problem made = problem();
    // Pretend that the policy as it is did better in the other weeks than any choice can.
    made.unseen.waits = {0s, 0s};
    made.unseen.limits = {Seconds{-1}, Seconds{-1}};
    const Tuning tuning = *tune(made, {}, effort(20));
    EXPECT_TRUE(tuning.is_better);
    EXPECT_EQ(tuning.recommended(), nullptr);
    EXPECT_THAT(tuning.choices.front().worse, ::testing::Contains(0U));
}

TEST(Tuning, APolicyThatHoldsEverythingIsLeftAlone)
{
    std::string good = k_policy;
    good.replace(good.find("n1 "), 3, "'n[1-2]' ");
    good.replace(good.find("n[2-6]"), 6, "n[3-6]");
    const Problem made = problem(good);
    const Tuning tuning = *tune(made, {}, effort(30));
    EXPECT_FALSE(tuning.is_better);
    EXPECT_EQ(tuning.recommended(), nullptr);
    EXPECT_TRUE(holds(made.unseen, made.unseen.waits));
}

TEST(Records, AreReadAsTheyAreWritten)
{
    const std::vector<Seconds> waits{0s, 72h, k_never};
    EXPECT_EQ(record_of(255, waits), "00000000000000ff 0 259200 never");
    EXPECT_EQ(*parse_record("00000000000000ff 0 259200 never"), (Known::value_type{255, waits}));
    for (const char* text : {"", "ff 1", "00000000000000ff 1x", "00000000000000ff  1",
                             "00000000000000fg 1", "00000000000000ff1", "00000000000000ff -1",
                             "00000000000000ff 99999999999999999", "2026-11-29T11:00:00.000000Z"}) {
        EXPECT_FALSE(parse_record(text)) << text;
    }
}

TEST(Records, BelongToOneProblem)
{
    const Problem one = problem();
    const Jobs jobs = jobs_of(3);
    EXPECT_EQ(problem_hash(one, jobs), problem_hash(problem(), jobs_of(3)));
    EXPECT_NE(problem_hash(one, jobs),
              problem_hash(problem(k_policy, 3, *parse_targets("fast: p95<=1m")), jobs));
    Jobs other = jobs;
    other.trace.jobs[5].duration += 1s;
    EXPECT_NE(problem_hash(one, jobs), problem_hash(one, other));
    other = jobs;
    other.user_model.checkpointed_percent = 100;
    EXPECT_NE(problem_hash(one, jobs), problem_hash(one, other));
}

TEST(Demand, ATargetBeyondTheMachineIsReportedWithTheReason)
{
    const policy::Rules rules(file_of(k_policy).policy);
    Jobs jobs = jobs_of(2);
    for (sim::TraceJob& job : jobs.trace.jobs) {
        job.gpus = 2; // of 12: eight in 90 minutes, which fit
    }
    std::vector<Group> groups = *groups_of(rules, jobs.trace, jobs.user_model);
    const auto target = [](const char* text) { return parse_targets(text)->front(); };
    EXPECT_FALSE(*impossible(rules, jobs, target("fast: p95<=10m"), groups[0]));
    for (sim::TraceJob& job : jobs.trace.jobs) {
        job.gpus = job.duration < 2h ? 8 : 2; // 32 in 90 minutes
    }
    groups = *groups_of(rules, jobs.trace, jobs.user_model);
    const auto none = *impossible(rules, jobs, target("short: p95<=10m"), groups.back());
    ASSERT_TRUE(none);
    EXPECT_GT(none->best, 10min);
    EXPECT_NEAR(none->demand.most_in_a_week, 2.0 / 7 * 8 * 4 * 55 / (12 * 90), 0.01);
    const auto demands = demands_of(rules.policy(), jobs.trace, groups);
    EXPECT_EQ(demands.back().group, "");
    EXPECT_GT(demands.back().of_all, none->demand.of_all);
}

TEST(Parallel, DoesEverythingOnceAndTicksMeanwhile)
{
    std::vector<std::atomic<int>> done(50);
    in_parallel(
        done.size(), [&](std::size_t i) { ++done[i]; }, [] {});
    for (const auto& count : done) {
        EXPECT_EQ(count, 1);
    }
    std::atomic<int> ticks = 0;
    in_parallel(
        1,
        [&](std::size_t) {
            while (ticks == 0) {
                std::this_thread::sleep_for(1ms);
            }
        },
        [&] { ++ticks; });
    EXPECT_GE(ticks, 1);
    in_parallel(
        0, [](std::size_t) { FAIL(); }, [] {});
}

} // namespace
} // namespace gpuq::tune::testing
