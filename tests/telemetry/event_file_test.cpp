// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/event_file.h"

#include "event_bytes.h"
#include "telemetry/crc32c.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;

std::string from_hex(std::string_view hex)
{
    std::string bytes;
    for (std::size_t at = 0; at < hex.size(); at += 2) {
        bytes += static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16));
    }
    return bytes;
}

/// The points of all tags as one text.
std::string told(const Curves& curves)
{
    std::string text;
    for (const auto& [tag, series] : curves.by_tag()) {
        for (const Series::Bucket& bucket : series.buckets()) {
            text += fmt::format("{} {} {} {}{}\n", tag, bucket.low.step, bucket.low.value,
                                bucket.low.at->time_since_epoch().count(),
                                bucket.begins_again ? " again" : "");
        }
    }
    return text;
}

std::string hundred_records()
{
    std::string bytes = events::begin(1.7e9);
    for (int step = 1; step <= 33; ++step) {
        const double at = 1.7e9 + step;
        bytes += events::simple(at, step, "train/loss", 1.0F / static_cast<float>(step));
        bytes += events::tensor(at, step, "accuracy", static_cast<float>(step) / 64,
                                step == 1 ? events::metadata("scalars") : "");
        bytes += events::record(events::event(at, step, events::field(5, "")));
    }
    return bytes;
}

Curves read_whole(std::string_view bytes)
{
    Curves curves;
    EventFile().feed(bytes, curves);
    return curves;
}

TEST(Crc32c, IsCastagnolis)
{
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
    EXPECT_EQ(masked(crc32c("\x1a\x11"
                            "CRC test, one two")),
              0x5794d08aU);
    const std::string text = "in two parts, neither of eight bytes";
    EXPECT_EQ(crc32c(text.substr(11), crc32c(text.substr(0, 11))), crc32c(text));
}

TEST(EventFile, ReadsARecordOfTensorBoards)
{
    Curves curves;
    EventFile file;
    file.feed(
        from_hex("200000000000000029eda9500900000040fc54d941102a2a130a110a0a747261696e2f6c6f73"
                 "73150000003fe8d79a41"),
        curves);
    EXPECT_EQ(file.records(), 1U);
    EXPECT_EQ(file.offset(), 48U);
    ASSERT_NE(curves.find("train/loss"), nullptr);
    EXPECT_EQ(curves.find("train/loss")->last(), (Point{42, Time(1'700'000'000s), 0.5}));
}

TEST(EventFile, ReadsWhatIsAScalarAndNothingElse)
{
    const std::string histogram =
        events::field(5, events::field(1, events::field(1, "weights") + events::field(5, "xyz")));
    const Curves curves =
        read_whole(events::begin(1) + events::tensor(2, 1, "a", 0.5, events::metadata("scalars")) +
                   events::tensor(3, 2, "a", 0.25, "") + events::tensor(3, 2, "text", 1, "") +
                   events::tensor(3, 2, "text", 1, events::metadata("text")) +
                   events::tensor(4, 3, "a", 7, "", events::field(2, "\x08\x01")) + // of rank 1
                   events::record(events::event(5, 4, histogram)));
    EXPECT_EQ(told(curves), "a 1 0.5 2000000\na 2 0.25 3000000\n");
}

TEST(EventFile, GoesOnWhereItWasCutAtEveryByte)
{
    const std::string bytes = hundred_records();
    const std::string whole = told(read_whole(bytes));
    EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 66);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        Curves curves;
        EventFile file;
        file.feed(std::string_view(bytes).substr(0, cut), curves);
        ASSERT_FALSE(file.is_damaged());
        ASSERT_LE(file.offset(), cut);
        ASSERT_TRUE(whole.empty() || told(curves).size() <= whole.size());
        file.feed(std::string_view(bytes).substr(cut), curves);
        ASSERT_EQ(told(curves), whole) << cut;
        ASSERT_EQ(file.records(), 100U);
        ASSERT_EQ(file.offset(), bytes.size());
    }
    Curves curves;
    EventFile file;
    for (const char byte : bytes) {
        file.feed({&byte, 1}, curves);
    }
    EXPECT_EQ(told(curves), whole);
}

TEST(EventFile, SkipsARecordWithWrongDataAndCountsIt)
{
    const std::string first = events::simple(1, 1, "loss", 1);
    std::string bad = events::simple(2, 2, "loss", 2);
    bad[20] ^= 1;
    Curves curves;
    EventFile file;
    file.feed(first + bad + events::record("\x0a") + events::simple(3, 3, "loss", 3), curves);
    EXPECT_EQ(told(curves), "loss 1 1 1000000\nloss 3 3 3000000\n");
    EXPECT_EQ(file.bad_records(), 2U);
    EXPECT_FALSE(file.is_damaged());
}

TEST(EventFile, StopsAtALengthThatIsDamaged)
{
    const std::string first = events::simple(1, 1, "loss", 1);
    std::string bad = events::simple(2, 2, "loss", 2);
    bad[3] ^= 1;
    Curves curves;
    EventFile file;
    file.feed(first + bad, curves);
    file.feed(first, curves);
    EXPECT_TRUE(file.is_damaged());
    EXPECT_EQ(file.offset(), first.size());
    EXPECT_EQ(told(curves), "loss 1 1 1000000\n");
    const std::string long_length = events::raw(EventFile::k_longest_record + 1);
    EventFile too_long;
    too_long.feed(long_length + events::raw(masked(crc32c(long_length))), curves);
    EXPECT_TRUE(too_long.is_damaged());
}

TEST(EventFile, PassesOverALongRecordWithoutHoldingIt)
{
    const std::string image = events::record(std::string(3U << 20, 'x'));
    std::string bad = image;
    bad[100] = 'y';
    const std::string bytes = image + bad + events::simple(1, 1, "loss", 1);
    for (const std::size_t piece :
         {bytes.size(), std::size_t{65537}, std::size_t{(3U << 20) + 14}}) {
        Curves curves;
        EventFile file;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            file.feed(std::string_view(bytes).substr(at, piece), curves);
        }
        EXPECT_EQ(told(curves), "loss 1 1 1000000\n") << piece;
        EXPECT_EQ(file.records(), 2U);
        EXPECT_EQ(file.bad_records(), 1U);
        EXPECT_EQ(file.offset(), bytes.size());
    }
}

TEST(EventFile, FindsARecordBehindWhatIsLeftOut)
{
    const std::string bytes = hundred_records();
    const Curves whole = read_whole(bytes);
    for (std::size_t from = 300; from + 200 < bytes.size(); from += 7) {
        Curves curves;
        EventFile file;
        file.feed(std::string_view(bytes).substr(0, 300), curves);
        file.skip(from - 300);
        file.feed(std::string_view(bytes).substr(from), curves);
        ASSERT_EQ(file.offset(), bytes.size()) << from;
        ASSERT_EQ(file.bad_records(), 0U);
        ASSERT_NE(curves.find("accuracy"), nullptr);
        ASSERT_EQ(curves.find("accuracy")->last(), whole.find("accuracy")->last());
    }
    Curves curves;
    EventFile none;
    none.skip(5);
    none.feed("there is no record here", curves);
    EXPECT_EQ(none.offset(), 28U);
    EXPECT_FALSE(none.is_damaged());
}

TEST(EventFile, RefusesATimeThatIsNone)
{
    constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double k_infinite = std::numeric_limits<double>::infinity();
    for (const double at : {k_nan, k_infinite, -1.0, 1e300}) {
        Curves curves;
        EventFile file;
        file.feed(events::simple(at, 1, "loss", 1), curves);
        EXPECT_EQ(file.bad_records(), 1U) << at;
        EXPECT_EQ(told(curves), "");
    }
}

TEST(EventFile, SurvivesAnyBitThatFlips)
{
    const std::string bytes = hundred_records();
    std::mt19937 random(7);
    for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 1 + random() % 5) {
        std::string bad = bytes;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
        Curves curves;
        EventFile file;
        file.feed(bad, curves);
        // One record is lost, or, with its length, all behind it.
        ASSERT_TRUE(file.is_damaged() ? file.offset() <= bit / 8
                                      : file.records() == 99 && file.bad_records() == 1)
            << bit;
    }
}

} // namespace
} // namespace gpuq::telemetry
