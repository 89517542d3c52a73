// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/sample_file.h"

#include "telemetry/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

const Time k_began{std::chrono::seconds{1'764'000'000}};

/// A file as on disk: unwritten parts are zero.
struct File {
    explicit File(std::size_t gpus)
        : writer(SampleHeader{k_began, "gpu-7", std::vector<GpuName>(gpus)})
    {
        write(writer.header());
    }
    void write(const Piece& piece)
    {
        bytes.resize(std::max<std::size_t>(bytes.size(), piece.offset + piece.bytes.size()));
        bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
    }
    void add(const Sample& sample)
    {
        for (const Piece& piece : writer.add(sample)) {
            write(piece);
        }
    }
    SampleWriter writer;
    std::string bytes;
};

Sample at_second(int second, std::size_t gpus)
{
    Sample sample;
    sample.at = k_began + std::chrono::seconds(second);
    sample.elapsed = std::chrono::seconds(second);
    sample.stands_for = 1s;
    sample.gpu_time = {std::chrono::seconds(second), 1ms, 2ms};
    sample.run[RunMetric::cpu] = Reading::of(static_cast<std::uint64_t>(second) * 10);
    sample.run[RunMetric::memory] = Reading::of(std::uint64_t{1} << 40);
    sample.run[RunMetric::node_net_rx] = Unknown::no_permission;
    sample.gpus.assign(gpus, GpuSample::unknown(Unknown::not_supported));
    for (GpuSample& gpu : sample.gpus) {
        gpu[GpuMetric::busy] = Reading::of(static_cast<std::uint64_t>(second % 100) * 100);
        gpu[GpuMetric::power] = Unknown::lost;
    }
    return sample;
}

File with_samples(int count, std::size_t gpus)
{
    File file(gpus);
    for (int second = 1; second <= count; ++second) {
        file.add(at_second(second, gpus));
    }
    return file;
}

TEST(SampleFile, GivesBackWhatWasWritten)
{
    const File file = with_samples(3, 2);
    const std::vector<Sample> expected = {at_second(1, 2), at_second(2, 2), at_second(3, 2)};
    EXPECT_EQ(all_samples(file.bytes), expected);
    EXPECT_EQ(newest_sample(file.bytes), expected.back());
    EXPECT_EQ(newest_sample(file.bytes.substr(0, k_newest_size)), expected.back());
}

TEST(SampleFile, KeepsEveryReasonAndNeverMakesItANumber)
{
    for (std::size_t i = 0; i < k_unknowns; ++i) {
        File file(1);
        Sample sample = at_second(1, 1);
        sample.gpus[0] = GpuSample::unknown(static_cast<Unknown>(i));
        sample.run.readings.fill(static_cast<Unknown>(i));
        file.add(sample);
        EXPECT_EQ(newest_sample(file.bytes), sample) << word(static_cast<Unknown>(i));
    }
}

TEST(SampleFile, ANumberThatLooksLikeAReasonIsImplausible)
{
    File file(1);
    Sample sample = at_second(1, 1);
    sample.gpus[0][GpuMetric::pcie_rx] = Reading::of(0xffffff01U);
    sample.run[RunMetric::disk_read] = Reading::of(~std::uint64_t{0});
    file.add(sample);
    const auto read = newest_sample(file.bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->gpus[0][GpuMetric::pcie_rx], Reading(Unknown::implausible));
    EXPECT_EQ(read->run[RunMetric::disk_read], Reading(Unknown::implausible));
}

TEST(SampleFile, TheHeaderTellsTheGpusOnceTheyAreKnown)
{
    File file(1);
    EXPECT_EQ(sample_header(file.bytes)->gpus, std::vector<GpuName>(1));
    file.writer.rename({{"GPU-1234", "Tesla K80", "00000000:05:00.0"}});
    file.write(file.writer.header());
    const auto header = sample_header(file.bytes);
    ASSERT_TRUE(header);
    EXPECT_EQ(*header,
              (SampleHeader{k_began, "gpu-7", {{"GPU-1234", "Tesla K80", "00000000:05:00.0"}}}));
}

TEST(SampleFile, TheHeaderTellsTheCpusOfTheJob)
{
    const std::vector<GpuName> gpus(k_most_gpus);
    SampleWriter writer({k_began, std::string(300, 'n'), gpus, 48});
    const Piece piece = writer.header();
    const auto header = sample_header(std::string(piece.offset, '\0') + piece.bytes);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->cpus, 48U);
    EXPECT_EQ(sample_header(File(2).bytes)->cpus, 0U);
}

TEST(SampleFile, AHeaderTornWhileItIsWrittenAgainLeavesTheOldOne)
{
    File file = with_samples(2, 1);
    file.writer.rename({{"GPU-1234", "Tesla K80", ""}});
    Piece piece = file.writer.header();
    piece.bytes.resize(100);
    file.write(piece);
    ASSERT_TRUE(sample_header(file.bytes));
    EXPECT_EQ(all_samples(file.bytes).size(), 2U);
}

TEST(SampleFile, CutAnywhereItGivesTheWholeSamplesBeforeTheCut)
{
    const File file = with_samples(5, 1);
    std::size_t most = 0;
    for (std::size_t size = 0; size <= file.bytes.size(); ++size) {
        const std::string cut = file.bytes.substr(0, size);
        const std::vector<Sample> samples = all_samples(cut);
        ASSERT_GE(samples.size(), most) << size;
        most = samples.size();
        for (std::size_t i = 0; i < samples.size(); ++i) {
            ASSERT_EQ(samples[i], at_second(static_cast<int>(i) + 1, 1));
        }
        if (const auto newest = newest_sample(cut)) {
            ASSERT_GE(newest->elapsed, 4s);
        }
    }
    EXPECT_EQ(most, 5U);
}

TEST(SampleFile, AWriteTornAtAnyByteLosesNoOtherSample)
{
    const File before = with_samples(4, 1);
    SampleWriter writer = before.writer;
    const std::vector<Piece> pieces = writer.add(at_second(5, 1));
    for (const Piece& torn : pieces) {
        for (std::size_t size = 0; size < torn.bytes.size(); ++size) {
            File file = before;
            file.write({torn.offset, torn.bytes.substr(0, size)});
            const std::vector<Sample> samples = all_samples(file.bytes);
            ASSERT_EQ(samples.size(), 4U) << size;
            ASSERT_EQ(samples.back(), at_second(4, 1));
            ASSERT_TRUE(newest_sample(file.bytes)) << size;
        }
    }
}

TEST(SampleFile, ADamagedSampleInTheMiddleIsSkipped)
{
    const File whole = with_samples(5, 1);
    const std::size_t begin = whole.bytes.size() - 3 * (whole.bytes.size() - 8192) / 7;
    for (std::size_t place = begin; place < begin + 100; ++place) {
        std::string bytes = whole.bytes;
        bytes[place] = static_cast<char>(bytes[place] ^ 0x41);
        EXPECT_THAT(all_samples(bytes), SizeIs(4));
    }
}

TEST(SampleFile, TimesThatCanNotBeStayWithinBounds)
{
    File file(1);
    Sample sample = at_second(1, 1);
    sample.at = Time::min();
    sample.elapsed = std::chrono::milliseconds::max();
    sample.gpu_time = {std::chrono::milliseconds::max(), std::chrono::milliseconds::min(), 1ms};
    file.add(sample);
    const auto read = newest_sample(file.bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->at, Time{});
    EXPECT_LT(read->elapsed, std::chrono::hours(24 * 366 * 201));
    EXPECT_EQ(read->gpu_time.idle, 0ms);
    EXPECT_GT(read->gpu_time.allocated(), 0ms);
    EXPECT_THAT(all_samples(file.bytes), SizeIs(1));
}

TEST(SampleFile, AnythingElseIsRefused)
{
    EXPECT_FALSE(sample_header(""));
    EXPECT_FALSE(sample_header(std::string(20'000, '\0')));
    EXPECT_FALSE(sample_header(std::string(20'000, '\xff')));
    EXPECT_THAT(all_samples(std::string(20'000, '\0')), IsEmpty());
}

TEST(SampleFile, TwoHoursStayWholeAndTwoDaysFitIntoEightMebibytes)
{
    constexpr int k_two_days = 48 * 3600;
    File file(8);
    file.bytes.reserve(std::size_t{8} << 20);
    for (int second = 1; second <= k_two_days; ++second) {
        file.add(at_second(second, 8));
    }
    EXPECT_LT(file.bytes.size(), std::size_t{8} << 20);
    const std::vector<Sample> all = all_samples(file.bytes);
    EXPECT_THAT(all, SizeIs(7200 + 46 * 60));
    EXPECT_EQ(all.front().elapsed, 60s);
    EXPECT_EQ(all.front().stands_for, 60s);
    EXPECT_EQ(all.back(), at_second(k_two_days, 8));
    auto covered = 0ms;
    for (const Sample& sample : all) {
        covered += sample.stands_for;
        ASSERT_EQ(sample.elapsed, covered); // no gap and no overlap
    }
    EXPECT_EQ(newest_sample(file.bytes.substr(0, k_newest_size)), at_second(k_two_days, 8));
}

TEST(Thinner, TakesMeansOfWhatIsKnownAndTheLastOfWhatCounts)
{
    Thinner thinner;
    for (int second = 1; second <= 3; ++second) {
        Sample sample = at_second(second, 1);
        sample.gpus[0][GpuMetric::busy] =
            second == 2 ? Reading(Unknown::hung) : Reading::of(second * 1000U);
        sample.gpus[0][GpuMetric::memory_used] = Reading::of(second == 2 ? 900U : 100U);
        thinner.add(sample);
    }
    const Sample one = thinner.take();
    EXPECT_EQ(one.stands_for, 3s);
    EXPECT_EQ(one.gpus[0][GpuMetric::busy], Reading::of(2000));
    EXPECT_EQ(one.gpus[0][GpuMetric::memory_used], Reading::of(900));
    EXPECT_EQ(one.gpus[0][GpuMetric::power], Reading(Unknown::lost));
    EXPECT_EQ(one.run[RunMetric::cpu], Reading::of(30));
    EXPECT_EQ(one.gpu_time, at_second(3, 1).gpu_time);
    EXPECT_EQ(thinner.stands_for(), 0s);
}

TEST(SamplesName, HasNoByteOfItsOwn)
{
    EXPECT_EQ(samples_name("gpu-7.site.edu"), "samples-gpu-7.site.edu");
    EXPECT_EQ(samples_name("../x\x1b["), "samples-.._x__");
}

std::vector<GpuSample> busy(std::initializer_list<Reading> readings)
{
    std::vector<GpuSample> gpus;
    for (const Reading& reading : readings) {
        gpus.push_back(GpuSample::unknown(Unknown::not_supported));
        gpus.back()[GpuMetric::busy] = reading;
    }
    return gpus;
}

TEST(Ledger, SplitsEachGpusTime)
{
    const auto gpus = busy({Reading::of(3333), Unknown::hung, Reading::of(0)});
    EXPECT_EQ(gpu_time_between(1001ms, gpus), (GpuTime{333ms, 668ms + 1001ms, 1001ms}));
}

TEST(Ledger, AlwaysAddsUp)
{
    for (int elapsed = 0; elapsed < 5000; elapsed += 7) {
        for (std::uint64_t share = 0; share <= 12'000; share += 173) {
            const auto gpus = busy({Reading::of(share), Unknown::lost, Reading::of(share / 2)});
            const auto time = gpu_time_between(std::chrono::milliseconds(elapsed), gpus);
            ASSERT_EQ(time.allocated(), std::chrono::milliseconds(3 * elapsed));
            ASSERT_GE(time.idle, 0ms);
        }
    }
}

TEST(Ledger, NothingIsKnownOfAGap)
{
    EXPECT_EQ(gpu_time_between(2501ms, busy({Reading::of(5000)})), (GpuTime{0ms, 0ms, 2501ms}));
}

TEST(Ledger, WhatWasAllocatedAndNotMeasuredIsUnknown)
{
    EXPECT_EQ(of_allocated({3s, 4s, 1s}, 10s), (GpuTime{3s, 4s, 3s}));
    EXPECT_EQ(of_allocated({3s, 4s, 1s}, 7500ms), (GpuTime{3s, 4s, 500ms}));
    EXPECT_EQ(of_allocated({3s, 4s, 1s}, 5s), (GpuTime{3s, 2s, 0s}));
    EXPECT_EQ(of_allocated({3s, 4s, 1s}, 0s), (GpuTime{0s, 0s, 0s}));
}

} // namespace
} // namespace gpuq
