// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace gpuq::tune {
namespace {

/// Four numbers with 12 choices each. The first cost falls with the first number, the second one
/// rises with it; both are lowest where the second number is 9; the others have no effect.
Costs toy(const Point& point)
{
    const double first = static_cast<double>(point[0]);
    const double away = std::abs(static_cast<double>(point[1]) - 9);
    return {0.5 - 0.1 * first + 0.05 * away, -0.6 + 0.08 * first + 0.05 * away};
}

const Space k_space{{12, 12, 12, 12}, {2, 3, 5, 5}};

/// Counts its calls and remembers their points.
struct Toy {
    std::vector<Point> points;

    std::vector<Evaluated> search(std::uint64_t seed, std::size_t most)
    {
        return tune::search(k_space, 2, seed, most, [this](const std::vector<Point>& batch) {
            std::vector<std::optional<Costs>> costs;
            for (const Point& point : batch) {
                points.push_back(point);
                costs.emplace_back(toy(point));
            }
            EXPECT_LE(batch.size(), k_batch);
            return costs;
        });
    }
};

TEST(Search, FindsTheBestCompromiseAndLeavesOtherNumbersAlone)
{
    for (const std::uint64_t seed : {1, 2, 3}) {
        Toy toy;
        const auto front = front_of(k_space, toy.search(seed, 300), 5);
        ASSERT_FALSE(front.empty());
        // Both goals are held for 5, 6 and 7; a step from 5 to 7 lowers the sum of the costs.
        EXPECT_EQ(front[0].point, (Point{7, 9, 5, 5})) << "seed " << seed;
    }
}

TEST(Search, StartsWhereThePolicyIsAndEvaluatesNothingTwice)
{
    Toy toy;
    const auto all = toy.search(1, 200);
    EXPECT_EQ(all.front().point, k_space.start);
    EXPECT_EQ(all.size(), 200U);
    EXPECT_EQ(toy.points.size(), 200U);
    EXPECT_EQ(std::set<Point>(toy.points.begin(), toy.points.end()).size(), 200U);
}

TEST(Search, TheSameSeedGivesTheSameSearchAndALongerOneContinuesIt)
{
    Toy one;
    Toy same;
    Toy longer;
    Toy other;
    one.search(7, 120);
    same.search(7, 120);
    longer.search(7, 200);
    other.search(8, 120);
    EXPECT_EQ(one.points, same.points);
    EXPECT_NE(one.points, other.points);
    longer.points.resize(116); // the last batch of the shorter one may be cut
    one.points.resize(116);
    EXPECT_EQ(one.points, longer.points);
}

TEST(Search, EndsWhenTheEvaluationDoes)
{
    std::size_t calls = 0;
    const auto all = search(k_space, 2, 1, 100, [&](const std::vector<Point>& batch) {
        ++calls;
        return calls < 3 ? std::vector<std::optional<Costs>>(batch.size(), toy(batch[0]))
                         : std::vector<std::optional<Costs>>{};
    });
    EXPECT_EQ(calls, 3U);
    EXPECT_EQ(all.size(), 1 + k_batch);
}

TEST(Search, PointsThatAreNotValidCostNothingButDoNotGoOnForEver)
{
    std::size_t calls = 0;
    const auto all = search(k_space, 2, 1, 5, [&](const std::vector<Point>& batch) {
        std::vector<std::optional<Costs>> costs;
        for (const Point& point : batch) {
            ++calls;
            costs.push_back(point == k_space.start ? std::optional(toy(point)) : std::nullopt);
        }
        return costs;
    });
    EXPECT_EQ(all.size(), 1U);
    EXPECT_LT(calls, 1000U);
    EXPECT_TRUE(search(k_space, 2, 1, 5, [](const std::vector<Point>& batch) {
                    return std::vector<std::optional<Costs>>(batch.size());
                }).empty());
}

TEST(Search, ASpaceThatIsExhaustedEndsIt)
{
    const Space small{{2, 1}, {0, 0}};
    std::size_t calls = 0;
    const auto all = search(small, 1, 1, 1000, [&](const std::vector<Point>& batch) {
        calls += batch.size();
        return std::vector<std::optional<Costs>>(batch.size(), Costs{0});
    });
    EXPECT_EQ(all.size(), 2U);
    EXPECT_EQ(calls, 2U);
}

TEST(Front, HasNoPointThatAnotherOneBeats)
{
    const Space space{{9, 9}, {0, 0}};
    const std::vector<Evaluated> all = {
        {{0, 0}, {0.4, 0.0}},    // the start
        {{1, 0}, {-0.2, 0.3}},   // better in the first goal
        {{1, 1}, {-0.19, 0.31}}, // practically the same, with more changes
        {{2, 0}, {-0.1, 0.5}},   // beaten by {1, 0}
        {{3, 0}, {-0.6, 0.8}},
    };
    const auto front = front_of(space, all, 5);
    ASSERT_EQ(front.size(), 2U);
    EXPECT_EQ(front[0].point, (Point{1, 0}));
    EXPECT_EQ(front[1].point, (Point{3, 0}));
    EXPECT_EQ(front_of(space, all, 1).size(), 1U);
    EXPECT_TRUE(front_of(space, {all[0]}, 5).empty());
}

TEST(Total, AMissedGoalCountsMoreThanAnyGain)
{
    const Space space{{9, 9}, {0, 0}};
    const Evaluated missed{{1, 0}, {0.1, -3}};
    const Evaluated held{{1, 1}, {-0.1, -0.1}};
    EXPECT_LT(total(space, held), total(space, missed));
    EXPECT_LT(total(space, {{1, 0}, {0, 0}}), total(space, {{1, 1}, {0, 0}})) << "fewer changes";
    EXPECT_EQ(changes_in(space, {3, 0}), 1U);
}

} // namespace
} // namespace gpuq::tune
