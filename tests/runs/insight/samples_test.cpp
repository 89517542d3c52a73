// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/samples.h"

#include "fakes/now.h"
#include "runs/run_on_disk.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

/// A node's sample file with one sample.
std::string file_with(const GpuTime& gpu_time)
{
    SampleWriter writer({k_now - 1h, "node1", {GpuName{}}});
    Sample sample;
    sample.at = k_now - 1s;
    sample.elapsed = sample.stands_for = 1s;
    sample.gpu_time = gpu_time;
    sample.gpus.resize(1);
    std::string bytes;
    std::vector<Piece> pieces = writer.add(sample);
    pieces.push_back(writer.header());
    for (const Piece& piece : pieces) {
        bytes.resize(std::max<std::size_t>(bytes.size(), piece.offset + piece.bytes.size()));
        bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
    }
    return bytes;
}

struct Chained {
    Chained()
    {
        status.run = run;
        status.link = LinkNumber{2};
        LinkPast first{LinkNumber{1}};
        first.started_at = k_now - 100s;
        first.ending = Ending{0, Cause::finished, "", k_now - 50s};
        LinkPast second{LinkNumber{2}};
        second.started_at = k_now - 40s;
        status.links = {first, second};
        status.started_at = k_now - 40s;
    }
    void put(int link, const GpuTime& gpu_time)
    {
        const std::string directory = layout::link_dir(run.key, LinkNumber{link});
        ASSERT_TRUE(store.write(directory + "/samples-node1", file_with(gpu_time)));
    }

    fakes::MemoryStore store;
    Run run = fakes::some_run(k_now - 200s, "train");
    RunStatus status{run.key};
};

TEST(Samples, TheTimeOfAChainIsThatOfAllItsLinks)
{
    Chained chained;
    chained.put(1, {30s, 10s, 2s});
    chained.put(2, {5s, 15s, 1s});
    // 50 s and 40 s on one GPU; time without samples counts as unknown.
    EXPECT_EQ(gpu_time_so_far(chained.store, chained.status, k_now), (GpuTime{35s, 25s, 30s}));
}

TEST(Samples, WithoutAnyAllIsUnknown)
{
    Chained chained;
    EXPECT_EQ(gpu_time_so_far(chained.store, chained.status, k_now), (GpuTime{0s, 0s, 90s}));
    chained.status.links.clear();
    EXPECT_EQ(gpu_time_so_far(chained.store, chained.status, k_now), (GpuTime{0s, 0s, 40s}));
    chained.status.started_at.reset();
    EXPECT_EQ(gpu_time_so_far(chained.store, chained.status, k_now), GpuTime{});
}

TEST(Samples, OtherFilesOfALinkAreNotRead)
{
    Chained chained;
    chained.put(2, {5s, 15s, 1s});
    const std::string directory = layout::link_dir(chained.run.key, LinkNumber{2});
    ASSERT_TRUE(chained.store.write(directory + "/journal.jsonl", "x"));
    ASSERT_TRUE(chained.store.write(directory + "/samples-node2", "x"));
    const auto samples = newest_samples(chained.store, chained.run.key, LinkNumber{2});
    ASSERT_EQ(samples.size(), 1U);
    EXPECT_EQ(samples[0].header.node, "node1");
    EXPECT_TRUE(newest_samples(chained.store, chained.run.key, LinkNumber{7}).empty());
}

/// The sample file of a node whose program is still running.
class Recent : public testing::Test {
protected:
    Recent()
    {
        m_store.append(m_file, "");
        write(m_writer.header());
    }

    void add(int from, int to)
    {
        for (int second = from; second <= to; ++second) {
            Sample sample;
            sample.at = k_now + std::chrono::seconds(second);
            sample.elapsed = std::chrono::seconds(second);
            sample.stands_for = 1s;
            sample.gpus.resize(1);
            for (const Piece& piece : m_writer.add(sample)) {
                write(piece);
            }
        }
    }
    void write(const Piece& piece)
    {
        std::string& bytes = m_store.files[m_file];
        bytes.resize(std::max<std::size_t>(bytes.size(), piece.offset + piece.bytes.size()));
        bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
    }
    /// Clears slots: reading them again would return no samples.
    void wipe_slots(std::size_t from, std::size_t count)
    {
        const FinestSlots slots = finest_slots(m_header);
        write({slots.offset + from * slots.size, std::string(count * slots.size, '\0')});
    }
    /// Seconds of the first and the last sample, and their number.
    std::vector<long> read()
    {
        const auto& samples =
            m_recent.of(m_key, LinkNumber{1}, newest_samples(m_store, m_key, LinkNumber{1}));
        if (samples.empty()) {
            return {};
        }
        const auto in_order = [](const Sample& a, const Sample& b) {
            return a.elapsed < b.elapsed;
        };
        EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end(), in_order));
        return {samples.front().elapsed / 1s, samples.back().elapsed / 1s,
                static_cast<long>(samples.size())};
    }

    using Seconds = std::vector<long>;
    fakes::MemoryStore m_store;
    RunKey m_key = *RunKey::parse("20261123T072953.601Z-9ace793821375167");
    std::string m_file = layout::link_dir(m_key, LinkNumber{1}) + "/samples-node1";
    SampleHeader m_header{k_now, "node1", {GpuName{}}};
    SampleWriter m_writer{m_header};
    RecentSamples m_recent{m_store, std::chrono::minutes(1)};
};

TEST_F(Recent, AreTheLastMinutesUpToTheNewest)
{
    EXPECT_EQ(read(), Seconds{});
    add(1, 30);
    EXPECT_EQ(read(), (Seconds{1, 30, 30}));
    add(31, 100);
    EXPECT_EQ(read(), (Seconds{40, 100, 61}));
    EXPECT_EQ(read(), (Seconds{40, 100, 61}));
}

TEST_F(Recent, WhatIsKnownIsNotReadAgain)
{
    add(1, 30);
    EXPECT_EQ(read(), (Seconds{1, 30, 30}));
    wipe_slots(0, 30);
    add(31, 35);
    EXPECT_EQ(read(), (Seconds{1, 35, 35}));
}

TEST_F(Recent, GoOnWhereTheSlotsBeginAgain)
{
    add(1, 7198);
    EXPECT_EQ(read(), (Seconds{7138, 7198, 61}));
    add(7199, 7203);
    EXPECT_EQ(read(), (Seconds{7143, 7203, 61}));
    wipe_slots(0, 3);
    add(7204, 7205);
    EXPECT_EQ(read(), (Seconds{7145, 7205, 61}));
}

TEST_F(Recent, WhereThereIsLessThanExpectedAllAreRead)
{
    add(1, 30);
    EXPECT_EQ(read(), (Seconds{1, 30, 30}));
    add(31, 40);
    wipe_slots(25, 15); // including slots already read; the newest sample is stored twice
    EXPECT_EQ(read(), (Seconds{1, 25, 25}));
}

TEST_F(Recent, OfAnotherFileNothingIsKept)
{
    add(1, 30);
    EXPECT_EQ(read(), (Seconds{1, 30, 30}));
    m_header.began += 1h;
    m_writer = SampleWriter(m_header);
    m_store.files[m_file].clear();
    write(m_writer.header());
    EXPECT_EQ(read(), Seconds{});
    add(10, 12);
    EXPECT_EQ(read(), (Seconds{10, 12, 3}));
}

} // namespace
} // namespace gpuq
