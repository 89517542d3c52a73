// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/samples.h"

#include "runs/run_on_disk.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

const Time k_now{std::chrono::seconds{1'764'000'000}};

/// A node's file with one sample.
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
        const std::string folder = layout::link_dir(run.key, LinkNumber{link});
        ASSERT_TRUE(store.write(folder + "/samples-node1", file_with(gpu_time)));
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
    // 50 s and 40 s of one GPU; what no sample covers is unknown.
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
    const std::string folder = layout::link_dir(chained.run.key, LinkNumber{2});
    ASSERT_TRUE(chained.store.write(folder + "/journal.jsonl", "x"));
    ASSERT_TRUE(chained.store.write(folder + "/samples-node2", "x"));
    const auto samples = newest_samples(chained.store, chained.run.key, LinkNumber{2});
    ASSERT_EQ(samples.size(), 1U);
    EXPECT_EQ(samples[0].header.node, "node1");
    EXPECT_TRUE(newest_samples(chained.store, chained.run.key, LinkNumber{7}).empty());
}

} // namespace
} // namespace gpuq
