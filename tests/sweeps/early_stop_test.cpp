// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/early_stop.h"

#include "core/strings.h"
#include "sweeps/board.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

namespace gpuq::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double k_infinity = std::numeric_limits<double>::infinity();
const Metric k_loss{"loss", Metric::Goal::min};
const Metric k_accuracy{"acc", Metric::Goal::max};

StopRule rule(std::string_view text)
{
    return parse_stop_rule(text).value();
}

std::string mistake(std::string_view text)
{
    const auto parsed = parse_stop_rule(text);
    return parsed ? "" : parsed.error().text;
}

/// A curve with these values at the steps 1, 2, 3, ...
telemetry::Series curve(const std::vector<double>& values, std::int64_t first = 1)
{
    telemetry::Series series;
    for (const double value : values) {
        series.add({first++, {}, value});
    }
    return series;
}

/// Other tries at a rung, each with a constant curve.
std::vector<RungValue> others(const std::vector<double>& values)
{
    std::vector<RungValue> all;
    for (const double value : values) {
        all.push_back({10, value, value, 10});
    }
    return all;
}

TEST(StopRules, AreReadWithTheirOptions)
{
    EXPECT_EQ(to_text(rule("median")), "median:min=10,tries=4");
    EXPECT_EQ(to_text(rule("asha")), "asha:eta=3,min=10");
    EXPECT_EQ(to_text(rule("asha:min=100,eta=4")), "asha:eta=4,min=100");
    EXPECT_EQ(to_text(rule("median:tries=7,min=1")), "median:min=1,tries=7");
    for (const char* text : {"asha:eta=4,min=100", "median:min=1,tries=7"}) {
        EXPECT_EQ(rule(to_text(rule(text))), rule(text));
    }
}

TEST(StopRules, AreRefusedWithThePositionOfTheMistake)
{
    EXPECT_EQ(mistake("hyperband"),
              "--stop-early: character 1: 'hyperband' is not a rule: median or asha");
    EXPECT_EQ(mistake("asha:eta=3,tries=4"), "--stop-early: character 12: 'tries' is not an option "
                                             "of asha: eta=N or min=STEPS");
    EXPECT_EQ(mistake("median:eta=3"), "--stop-early: character 8: 'eta' is not an option of "
                                       "median: min=STEPS or tries=N");
    EXPECT_EQ(mistake("asha:min=0"),
              "--stop-early: character 10: min: '0' is not a number from 1 to 1000000000000");
    EXPECT_EQ(mistake("asha:min=1,min=2"), "--stop-early: character 12: 'min' is given twice");
    EXPECT_THAT(mistake("asha:"), HasSubstr("character 6: '' is not an option"));
    EXPECT_THAT(mistake("asha:min=1,"), HasSubstr("character 12: '' is not an option"));
    EXPECT_THAT(mistake("asha:min"), HasSubstr("character 9: min: '' is not a number"));
    EXPECT_THAT(mistake(""), HasSubstr("character 1"));
}

TEST(Rungs, FormALadderThatAllTriesShare)
{
    const auto ladder = [](const StopRule& of, int count) {
        std::vector<std::int64_t> rungs;
        for (std::int64_t step = 0; count-- > 0; rungs.push_back(step)) {
            step = rung_after(of, step).value();
        }
        return rungs;
    };
    EXPECT_THAT(ladder(rule("asha:min=2"), 4), ElementsAre(2, 6, 18, 54));
    EXPECT_THAT(ladder(rule("median:min=10"), 6), ElementsAre(10, 12, 15, 17, 20, 24));
    EXPECT_THAT(ladder(rule("median:min=1"), 5), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_EQ(rung_after(rule("asha"), std::numeric_limits<std::int64_t>::max()), std::nullopt);
    EXPECT_EQ(rung_after(rule("median"), std::int64_t{1} << 60), std::nullopt);
}

TEST(Climbs, ReportEachRungOnce)
{
    Climb climb(rule("asha:min=2,eta=2"), k_loss, {});
    EXPECT_THAT(climb.passed(curve({})), IsEmpty());
    EXPECT_THAT(climb.passed(curve({4})), IsEmpty());
    EXPECT_THAT(climb.passed(curve({4, 2})), ElementsAre(RungValue{2, 2, 3, 2}));
    EXPECT_THAT(climb.passed(curve({4, 2, 5})), IsEmpty());
    EXPECT_THAT(climb.passed(curve({4, 2, 5, 1, 7, 7, 7, 6, 0})),
                ElementsAre(RungValue{4, 1, 3, 4}, RungValue{8, 1, 4.875, 8}));
}

TEST(Climbs, LeaveOutRungsBeforeTheFirstValue)
{
    Climb climb(rule("asha:min=2,eta=2"), k_accuracy, {});
    EXPECT_THAT(climb.passed(curve({1, 2, 3}, 7)), ElementsAre(RungValue{8, 2, 1.5, 2}));
}

TEST(Climbs, ContinueTheCurveOfAnEarlierAttempt)
{
    const RungValue earlier{2, 0.5, 1, 2};
    Climb climb(rule("asha:min=2,eta=2"), k_loss, earlier);
    EXPECT_THAT(climb.passed(curve({4, 4}, 3)), ElementsAre(RungValue{4, 0.5, 2.5, 4}));
    Climb anew(rule("asha:min=2,eta=2"), k_loss, earlier);
    EXPECT_THAT(anew.passed(curve({4, 4})), ElementsAre(RungValue{2, 4, 4, 2}));
}

TEST(Climbs, CountACurveThatIsNotANumberAsTheWorst)
{
    Climb climb(rule("asha:min=2,eta=2"), k_loss, {});
    EXPECT_THAT(climb.passed(curve({1, NAN})),
                ElementsAre(RungValue{2, k_infinity, k_infinity, 2}));
    // It has recovered.
    EXPECT_THAT(climb.passed(curve({1, NAN, 3, 5})), ElementsAre(RungValue{4, 1, 3, 3}));
    Climb rewards(rule("asha:min=2,eta=2"), k_accuracy, {});
    EXPECT_EQ(rewards.passed(curve({1, k_infinity})).front().best, -k_infinity);
}

TEST(Median, EndsATryThatIsWorseThanTheMeansOfTheOthers)
{
    const StopRule median = rule("median:min=5");
    const RungValue own{10, 3, 9, 10}; // its best value counts
    EXPECT_EQ(evaluate(median, k_loss, own, others({1, 2, 2.5, 4})),
              (EarlyStop{5, 10, 3, 2.25, 4}));
    EXPECT_EQ(evaluate(median, k_loss, own, others({1, 2, 4, 4})), std::nullopt) << "equal";
    EXPECT_EQ(evaluate(median, k_loss, own, others({1, 1, 1})), std::nullopt) << "too few";
    EXPECT_EQ(evaluate(median, k_accuracy, own, others({1, 2, 2.5, 4})), std::nullopt);
    EXPECT_TRUE(evaluate(median, k_accuracy, own, others({1, 4, 5, 4})));
    EXPECT_EQ(evaluate(median, k_loss, own, {}), std::nullopt);
}

TEST(Median, ComparesWithTheOthersMeansSinceTheRungBefore)
{
    const RungValue before{10, 3, 8, 10};
    EXPECT_EQ(since(before, {20, 1, 5, 20}), (RungValue{20, 1, 2, 10}));
    EXPECT_EQ(since({10, 3, k_infinity, 10}, {20, 1, 5, 20}), (RungValue{20, 1, 5, 20}))
        << "it has recovered";
    EXPECT_EQ(since(before, {20, k_infinity, k_infinity, 20}),
              (RungValue{20, k_infinity, k_infinity, 20}));
    EXPECT_EQ(since(before, {20, 1, 5, 10}), (RungValue{20, 1, 5, 10})) << "of another attempt";
    EXPECT_EQ(since({10, 0, -1e308, 1}, {20, 0, 1e308, 2}), (RungValue{20, 0, 1e308, 2}));
}

TEST(Median, EndsADivergedTryUnlessMostOthersAre)
{
    const StopRule median = rule("median");
    const RungValue diverged{10, k_infinity, k_infinity, 10};
    EXPECT_TRUE(evaluate(median, k_loss, diverged, others({1, 2, 3, k_infinity})));
    EXPECT_FALSE(
        evaluate(median, k_loss, diverged, others({1, k_infinity, k_infinity, k_infinity})));
}

TEST(Median, ComparesATryAgainWhenOthersHavePassedItsRungs)
{
    std::vector<Try> tries(6);
    tries[0].rungs = {{10, 3, 3, 10}, {12, 2.5, 2.8, 12}, {15, 2, 2.6, 15}};
    for (const double value : {1.0, 2.0, 4.0, 5.0}) { // as good as it at their first rung
        tries[static_cast<std::size_t>(value)].rungs = {{10, value, value, 10}};
    }
    const StopRule median = rule("median");
    EXPECT_EQ(find_loss(median, k_loss, tries, 1, tries[0].rungs), std::nullopt);
    tries[3].rungs = {{10, 2.5, 2.5, 10}};
    EXPECT_EQ(find_loss(median, k_loss, tries, 1, tries[0].rungs), (EarlyStop{1, 10, 3, 2.5, 5}));
    for (std::size_t i = 1; i < tries.size(); ++i) {
        tries[i].rungs = {{10, 1, 1, 10}, {12, 1, 1, 12}};
    }
    EXPECT_EQ(find_loss(median, k_loss, tries, 1, tries[0].rungs)->step, 12) << "the newest";
    EXPECT_TRUE(compares_again(median));
    EXPECT_FALSE(compares_again(rule("asha")));
}

TEST(Halving, KeepsTheBestOfThoseThatHaveReachedTheRung)
{
    const StopRule asha = rule("asha:eta=3,min=10");
    const RungValue own{10, 3, 9, 10};
    EXPECT_EQ(evaluate(asha, k_loss, own, {}), std::nullopt) << "the first one continues";
    EXPECT_EQ(evaluate(asha, k_loss, own, others({2})), (EarlyStop{1, 10, 3, 2, 1}));
    EXPECT_EQ(evaluate(asha, k_loss, own, others({4, 3})), std::nullopt) << "equal values continue";
    EXPECT_EQ(evaluate(asha, k_loss, own, others({2, 4, 5})), std::nullopt)
        << "two of four continue";
    EXPECT_EQ(evaluate(asha, k_loss, own, others({1, 2, 4, 5, 6})), (EarlyStop{1, 10, 3, 2, 5}));
    EXPECT_TRUE(evaluate(asha, k_accuracy, own, others({4, 2})));
    const RungValue diverged{10, k_infinity, k_infinity, 10};
    EXPECT_TRUE(evaluate(asha, k_loss, diverged, others({1e300})));
}

// Recorded curves (record_curves.py) of 64 trainings, 81 epochs each, of three tasks. The rules and
// their defaults were chosen with those of the function. Those of the digits were recorded after
// that, those of the letters after the median rule began to compare again.

using Curves = std::vector<std::vector<double>>;

Curves recorded(const std::string& task)
{
    constexpr std::size_t k_settings = 4;
    Curves curves;
    std::ifstream file(fmt::format("{}/curves_{}.csv", GPUQ_CURVES_DIR, task));
    for (std::string line; std::getline(file, line);) {
        const auto parts = split(std::string_view(line), ",");
        std::vector<double> values;
        for (std::size_t i = k_settings; i < parts.size(); ++i) {
            values.push_back(std::stod(std::string(parts[i])));
        }
        curves.push_back(std::move(values));
    }
    return curves;
}

struct Outcome {
    double cost = 0;   ///< part of the epochs of the full sweep
    double excess = 0; ///< of the best loss over that of the full sweep
};

/// Trainings in the order given, four at a time, each an epoch per round.
Outcome replayed(const Curves& curves, std::deque<std::size_t> left, const StopRule& stop)
{
    constexpr std::size_t k_workers = 4;
    struct Training {
        std::size_t number = 0;
        telemetry::Series curve = {};
        Climb climb;
    };
    std::vector<Try> tries(curves.size());
    std::vector<Training> running;
    double best = k_infinity, best_of_all = k_infinity;
    std::size_t epochs = 0, all_epochs = 0;
    for (const auto& values : curves) {
        all_epochs += values.size();
        for (const double value : values) {
            best_of_all = std::isnan(value) ? best_of_all : std::min(best_of_all, value);
        }
    }
    while (!left.empty() || !running.empty()) {
        for (; running.size() < k_workers && !left.empty(); left.pop_front()) {
            running.push_back({left.front(), {}, Climb(stop, k_loss, {})});
        }
        std::erase_if(running, [&](Training& one) {
            const auto& values = curves[one.number];
            const auto epoch = static_cast<std::size_t>(one.curve.points());
            one.curve.add({static_cast<std::int64_t>(epoch) + 1, {}, values[epoch]});
            ++epochs;
            best = std::isnan(values[epoch]) ? best : std::min(best, values[epoch]);
            const auto passed = one.climb.passed(one.curve);
            auto& rungs = tries[one.number].rungs;
            rungs.insert(rungs.end(), passed.begin(), passed.end());
            const auto& compared = compares_again(stop) ? rungs : passed;
            return find_loss(stop, k_loss, tries, one.number + 1, compared) ||
                   one.curve.points() == values.size();
        });
    }
    return {static_cast<double>(epochs) / static_cast<double>(all_epochs), best / best_of_all - 1};
}

struct Summary {
    Outcome as_recorded;
    double mean_cost = 0;
    int within_a_percent = 0;
};

/// In the recorded order, and in random ones.
Summary replays(const std::string& task, const StopRule& stop, int orders = 100)
{
    const Curves curves = recorded(task);
    std::deque<std::size_t> order;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        order.push_back(i);
    }
    Summary summary{replayed(curves, order, stop)};
    std::mt19937 chance(1);
    for (int i = 0; i < orders; ++i) {
        for (std::size_t left = order.size(); left > 1; --left) {
            std::swap(order[left - 1], order[chance() % left]);
        }
        const Outcome outcome = replayed(curves, order, stop);
        summary.mean_cost += outcome.cost / orders;
        summary.within_a_percent += outcome.excess <= 0.01 ? 1 : 0;
    }
    std::cout << task << ", " << to_text(stop) << ": cost " << summary.as_recorded.cost
              << ", best loss +" << 100 * summary.as_recorded.excess << " %; in " << orders
              << " random orders: mean cost " << summary.mean_cost
              << ", within 1 %: " << summary.within_a_percent << "\n";
    return summary;
}

class RecordedCurves : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Tasks, RecordedCurves, testing::Values("function", "digits", "letters"));

TEST_P(RecordedCurves, AreThoseOf64Trainings)
{
    const Curves curves = recorded(GetParam());
    ASSERT_EQ(curves.size(), 64U);
    for (const auto& values : curves) {
        EXPECT_EQ(values.size(), 81U);
    }
}

TEST_P(RecordedCurves, BothRulesFindTheBestForFortyPercentOfTheTime)
{
    for (const char* text : {"median", "asha"}) {
        const Summary summary = replays(GetParam(), rule(text));
        EXPECT_LE(summary.as_recorded.cost, 0.4) << text << ": the first tries are poor ones";
        EXPECT_LE(summary.as_recorded.excess, 0.01) << text;
        EXPECT_LE(summary.mean_cost, 0.4) << text;
        // The best training of the letters is only the fifteenth best one at the first rung.
        const bool is_slow = std::string_view(GetParam()) == "letters";
        EXPECT_GE(summary.within_a_percent, is_slow ? 40 : 95) << text;
    }
}

TEST(RecordedLetters, NeedALaterFirstRung)
{
    for (const char* text : {"median:min=16", "asha:min=16"}) {
        const Summary summary = replays("letters", rule(text));
        EXPECT_LE(summary.mean_cost, 0.45) << text;
        EXPECT_GE(summary.within_a_percent, 80) << text;
    }
}

TEST_P(RecordedCurves, AnEarlierFirstRungCostsLess)
{
    for (const char* text : {"median:min=5", "asha:min=5"}) {
        EXPECT_LE(replays(GetParam(), rule(text), 20).mean_cost, 0.32) << text;
    }
}

} // namespace
} // namespace gpuq::sweeps
