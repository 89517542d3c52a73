// SPDX-License-Identifier: GPL-2.0-or-later
// Run with a library that lacks all functions newer than the Tesla K80.
#include "nvml/gpus.h"

#include "nvml/scenario.h"

namespace gpuq::nvml {
namespace {

TEST(OldDriver, TellsWhatItCanAndTheRestIsNotSupported)
{
    const Scenario scenario(k_tesla);
    const auto gpus = nvml::gpus({1, "0", "0"});
    const GpuSample sample = gpus->measure().at(0).sample;
    EXPECT_EQ(sample[GpuMetric::busy], Reading::of(8700));
    EXPECT_EQ(sample[GpuMetric::memory_used], Reading::of(1048576));
    EXPECT_EQ(sample[GpuMetric::power], Reading::of(143000));
    EXPECT_EQ(sample[GpuMetric::pcie_rx], Reading(Unknown::not_supported));
    EXPECT_EQ(sample[GpuMetric::nvlink_rx], Reading(Unknown::not_supported));
    EXPECT_EQ(sample[GpuMetric::sm_active], Reading(Unknown::not_supported));
}

} // namespace
} // namespace gpuq::nvml
