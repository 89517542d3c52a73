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

/// The points of all tags as text.
std::string curves_text(const Curves& curves)
{
    std::string text;
    for (const auto& [tag, series] : curves.by_tag()) {
        for (const Series::Bucket& bucket : series.buckets()) {
            text += fmt::format("{} {} {} {}{}\n", tag, bucket.low.step, bucket.low.value,
                                bucket.low.at->time_since_epoch().count(),
                                bucket.gap_before ? " again" : "");
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
    EXPECT_EQ(curves_text(curves), "a 1 0.5 2000000\na 2 0.25 3000000\n");
}

TEST(EventFile, GoesOnWhereItWasCutAtEveryByte)
{
    const std::string bytes = hundred_records();
    const std::string whole = curves_text(read_whole(bytes));
    EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 66);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        Curves curves;
        EventFile file;
        file.feed(std::string_view(bytes).substr(0, cut), curves);
        ASSERT_LE(file.offset(), cut);
        ASSERT_TRUE(whole.empty() || curves_text(curves).size() <= whole.size());
        file.feed(std::string_view(bytes).substr(cut), curves);
        ASSERT_EQ(curves_text(curves), whole) << cut;
        ASSERT_EQ(file.records(), 100U);
        ASSERT_EQ(file.offset(), bytes.size());
    }
    Curves curves;
    EventFile file;
    for (const char byte : bytes) {
        file.feed({&byte, 1}, curves);
    }
    EXPECT_EQ(curves_text(curves), whole);
}

TEST(EventFile, SkipsARecordWithWrongDataAndCountsIt)
{
    const std::string first = events::simple(1, 1, "loss", 1);
    std::string bad = events::simple(2, 2, "loss", 2);
    bad[20] ^= 1;
    Curves curves;
    EventFile file;
    file.feed(first + bad + events::record("\x0a") + events::simple(3, 3, "loss", 3), curves);
    EXPECT_EQ(curves_text(curves), "loss 1 1 1000000\nloss 3 3 3000000\n");
    EXPECT_EQ(file.bad_records(), 2U);
    EXPECT_EQ(file.damaged_bytes(), bad.size());
}

TEST(EventFile, GoesOnBehindALengthThatIsDamaged)
{
    const std::string first = events::simple(1, 1, "loss", 1);
    std::string bad = events::simple(2, 2, "loss", 2);
    bad[3] ^= 1;
    Curves curves;
    EventFile file;
    file.feed(first + bad, curves);
    file.feed(events::simple(3, 3, "loss", 3), curves);
    EXPECT_EQ(curves_text(curves), "loss 1 1 1000000\nloss 3 3 3000000\n");
    EXPECT_EQ(file.damaged_bytes(), bad.size());
    EXPECT_EQ(file.bad_records(), 1U);
    const std::string too_long = events::raw(EventFile::k_longest_record + 1);
    const std::string header = too_long + events::raw(masked(crc32c(too_long)));
    Curves more;
    EventFile holed;
    holed.feed(first + std::string(57, '\0') + header + first, more);
    EXPECT_EQ(holed.records(), 2U);
    EXPECT_EQ(holed.damaged_bytes(), 57 + header.size());
}

/// Reads a damaged copy of the hundred records: at most `lost` records may be missing, and reading
/// in pieces must give the same result.
void expect_most(const std::string& bad, std::size_t lost, std::size_t at)
{
    Curves curves;
    EventFile whole;
    whole.feed(bad, curves);
    ASSERT_GE(whole.records() + lost, 100U) << at;
    Curves in_pieces;
    EventFile parts;
    for (std::size_t from = 0; from < bad.size(); from += 11) {
        parts.feed(std::string_view(bad).substr(from, 11), in_pieces);
    }
    ASSERT_EQ(parts.records(), whole.records()) << at;
    ASSERT_EQ(parts.bad_records(), whole.bad_records()) << at;
    ASSERT_EQ(parts.damaged_bytes(), whole.damaged_bytes()) << at;
    ASSERT_EQ(parts.offset(), whole.offset()) << at;
    ASSERT_EQ(curves_text(in_pieces), curves_text(curves)) << at;
}

TEST(EventFile, LosesNoMoreThanTheRecordThatIsDamaged)
{
    const std::string bytes = hundred_records();
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        std::string bad = bytes;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        expect_most(bad, 1, at);
        bad = bytes;
        bad.insert(at, 1, 'x');
        expect_most(bad, 1, at);
        bad = bytes;
        bad.erase(at, 1);
        expect_most(bad, 1, at);
    }
}

TEST(EventFile, ChecksNoMoreThanAFewTimesTheBytesOfACraftedFile)
{
    // Every 12 bytes are the header of a record of nearly 1 MiB, whose data has a wrong checksum.
    const std::size_t length = EventFile::k_longest_read - 8; // such a header follows it too
    const std::string number = events::raw(static_cast<std::uint64_t>(length));
    const std::string header = number + events::raw(masked(crc32c(number)));
    std::string bytes;
    while (bytes.size() < EventFile::k_longest_read + 20'000) {
        bytes += header;
    }
    Curves curves;
    EventFile whole;
    whole.feed(bytes, curves);
    EXPECT_GT(whole.bad_records(), 1U) << "the next record may begin within a damaged one";
    EXPECT_LE(whole.bad_records() * length, 5 * bytes.size());
    EventFile parts;
    for (std::size_t at = 0; at < bytes.size(); at += 99'991) {
        parts.feed(std::string_view(bytes).substr(at, 99'991), curves);
    }
    EXPECT_EQ(parts.bad_records(), whole.bad_records());
    EXPECT_EQ(parts.offset(), whole.offset());
    EXPECT_EQ(parts.damaged_bytes(), whole.damaged_bytes());
    EXPECT_EQ(curves_text(curves), "");
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
        EXPECT_EQ(curves_text(curves), "loss 1 1 1000000\n") << piece;
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
    EXPECT_EQ(none.offset(), 28U - 11) << "a header may begin in the rest";
    EXPECT_EQ(none.damaged_bytes(), 0U);
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
        EXPECT_EQ(curves_text(curves), "");
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
        ASSERT_EQ(file.records(), 99U) << bit;
        ASSERT_EQ(file.bad_records(), 1U) << bit;
    }
}

} // namespace
} // namespace gpuq::telemetry
