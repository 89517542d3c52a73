// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gpuq::telemetry {
namespace {

TEST(Series, KeepsTheExtremesOfAMillionPointsInBoundedMemory)
{
    Series series;
    for (std::int64_t step = 0; step < 1'000'000; ++step) {
        series.add({step, {}, step == 777'777 ? 50.0 : step == 123'456 ? -50.0 : 1.0});
    }
    std::uint64_t points = 0;
    const Point* highest = nullptr;
    const Point* lowest = nullptr;
    std::int64_t before = -1;
    for (const Series::Bucket& bucket : series.buckets()) {
        points += bucket.points;
        EXPECT_GT(std::min(bucket.low.step, bucket.high.step), before);
        before = std::max(bucket.low.step, bucket.high.step);
        highest = highest == nullptr || bucket.high.value > highest->value ? &bucket.high : highest;
        lowest = lowest == nullptr || bucket.low.value < lowest->value ? &bucket.low : lowest;
    }
    EXPECT_EQ(points, 1'000'000U);
    EXPECT_LE(series.buckets().size(), Series::k_most_buckets);
    EXPECT_GT(series.buckets().size(), Series::k_most_buckets / 4);
    EXPECT_EQ(*highest, (Point{777'777, {}, 50.0}));
    EXPECT_EQ(*lowest, (Point{123'456, {}, -50.0}));
    EXPECT_EQ(series.last(), (Point{999'999, {}, 1.0}));
    EXPECT_LE(series.recent().size(), 2 * Series::k_most_recent);
    EXPECT_EQ(series.recent().back().step, 999'999);
}

TEST(Series, MarksWhereTheProgramBeganAgain)
{
    Series series;
    for (const std::int64_t step : {1, 2, 3, 2, 3, 4}) {
        series.add({step, {}, 0});
    }
    EXPECT_EQ(series.restarts(), 1U);
    ASSERT_EQ(series.buckets().size(), 6U);
    EXPECT_TRUE(series.buckets()[3].gap_before);
    for (std::int64_t step = 5; step < 20'000; ++step) {
        series.add({step, {}, 0});
    }
    const auto gaps = std::ranges::count_if(series.buckets(), &Series::Bucket::gap_before);
    EXPECT_EQ(gaps, 1) << "merging keeps it";
    for (int i = 0; i < 100'000; ++i) {
        series.add({i % 2, {}, 0});
    }
    EXPECT_LE(series.buckets().size(), Series::k_most_buckets) << "not even gaps grow without end";
}

TEST(Series, GoesOnWithALaterOne)
{
    Series series, later;
    series.add({1, {}, 1});
    for (std::int64_t step = 2; step < 20'000; ++step) {
        later.add({step, {}, step == 777 ? 9.0 : step == 888 ? -9.0 : 1.0 / double(step)});
    }
    series.add(later);
    EXPECT_EQ(series.points(), 19'999U);
    EXPECT_EQ(series.restarts(), 0U) << "points are added in the order of their steps";
    EXPECT_EQ(series.first()->step, 1);
    EXPECT_EQ(series.last(), later.last());
    const auto& buckets = series.buckets();
    EXPECT_EQ(std::ranges::max(buckets, {}, [](const auto& one) { return one.high.value; }).high,
              (Point{777, {}, 9}));
    EXPECT_EQ(std::ranges::min(buckets, {}, [](const auto& one) { return one.low.value; }).low,
              (Point{888, {}, -9}));
}

TEST(Series, TellsSinceWhenItsValuesAreNone)
{
    Series series;
    series.add({1, {}, 0.5});
    EXPECT_FALSE(series.not_finite_since());
    series.add({2, {}, std::nan("")});
    series.add({3, {}, HUGE_VAL});
    EXPECT_EQ(series.not_finite_since()->step, 2);
    EXPECT_EQ(series.buckets().size(), 1U);
    series.add({4, {}, 0.4});
    EXPECT_FALSE(series.not_finite_since());
    ASSERT_EQ(series.buckets().size(), 2U);
    EXPECT_TRUE(series.buckets()[1].gap_before) << "no line leads over what is not known";
    EXPECT_EQ(series.restarts(), 0U);
}

TEST(Curves, HaveRoomForSoManyTags)
{
    Curves curves;
    for (int tag = 0; tag < 200; ++tag) {
        curves.add(std::to_string(tag), {1, {}, 1});
    }
    curves.add(std::string(1000, 'x'), {1, {}, 1});
    EXPECT_EQ(curves.by_tag().size(), Curves::k_most_tags);
    EXPECT_EQ(curves.left_out(), 201 - Curves::k_most_tags);
}

TEST(MainLoss, IsWhatPeopleMean)
{
    const auto loss_of = [](std::initializer_list<std::string_view> tags) {
        Curves curves;
        for (const std::string_view tag : tags) {
            curves.add(tag, {1, {}, 1});
        }
        const auto* found = main_loss(curves);
        return found != nullptr ? found->first : "none";
    };
    EXPECT_EQ(loss_of({"accuracy", "lr"}), "none");
    EXPECT_EQ(loss_of({"eval/loss", "train/loss", "train/aux_loss"}), "train/loss");
    EXPECT_EQ(loss_of({"val_loss", "loss"}), "loss");
    EXPECT_EQ(loss_of({"val_loss", "train_loss_step", "train_loss_epoch"}), "train_loss_step");
    EXPECT_EQ(loss_of({"val_loss", "Loss/generator"}), "Loss/generator");
}

} // namespace
} // namespace gpuq::telemetry
