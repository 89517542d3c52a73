// SPDX-License-Identifier: GPL-2.0-or-later
#include "nvml/gpus.h"

#include "nvml/scenario.h"

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

namespace gpuq::nvml {
namespace {

GpuSample only(Gpus& gpus)
{
    return gpus.measure().at(0).sample;
}

TEST(Gpus, TellsWhatTheDriverSays)
{
    const Scenario scenario(std::string(k_tesla) + "model=Tesla_K80 pci=5 uuid=GPU-abc\n");
    const auto gpus = nvml::gpus({1, "0", "0"});
    const auto activities = gpus->measure();
    ASSERT_EQ(activities.size(), 1U);
    EXPECT_EQ(activities[0].name, (GpuName{"GPU-abc", "Tesla_K80", "00000000:05:00.0"}));
    const GpuSample& sample = activities[0].sample;
    EXPECT_EQ(sample[GpuMetric::busy], Reading::of(8700));
    EXPECT_EQ(sample[GpuMetric::memory_used], Reading::of(1048576));
    EXPECT_EQ(sample[GpuMetric::memory_total], Reading::of(12582912));
    EXPECT_EQ(sample[GpuMetric::power], Reading::of(143000));
    EXPECT_EQ(sample[GpuMetric::temperature], Reading::of(61));
    EXPECT_EQ(sample[GpuMetric::sm_clock], Reading::of(875));
    EXPECT_EQ(sample[GpuMetric::memory_clock], Reading::of(2505));
    for (const GpuMetric metric : {GpuMetric::pcie_rx, GpuMetric::pcie_tx, GpuMetric::nvlink_rx,
                                   GpuMetric::sm_active, GpuMetric::tensor_active}) {
        EXPECT_EQ(sample[metric], Reading(Unknown::not_supported)) << row(metric).name;
    }
}

TEST(Gpus, EveryErrorIsAReasonAndNeverANumber)
{
    for (int error = 1; error <= 31; ++error) {
        const int code = error == 31 ? 999 : error;
        const Scenario scenario(std::string(k_tesla) +
                                "call=UtilizationRates err=" + std::to_string(code) + "\n");
        const auto gpus = nvml::gpus({1, "", ""});
        const GpuSample sample = only(*gpus);
        EXPECT_FALSE(sample[GpuMetric::busy].known()) << code;
        EXPECT_EQ(sample[GpuMetric::power], Reading::of(143000)) << code;
    }
}

TEST(Gpus, WhatCanNotBeIsRefused)
{
    const Scenario scenario("total=1000000 used=2000000 util=101\n");
    const GpuSample sample = only(*nvml::gpus({1, "", ""}));
    EXPECT_EQ(sample[GpuMetric::busy], Reading(Unknown::implausible));
    EXPECT_EQ(sample[GpuMetric::memory_used], Reading(Unknown::implausible));
}

TEST(Gpus, ALostGpuDoesNotStopTheOthersAndMayComeBack)
{
    const Scenario scenario(std::string("gpus=2\n") + k_tesla +
                            "gpu=1 call=MemoryInfo after=3 err=15\n"
                            "gpu=1 call=MemoryInfo after=5 err=0\n");
    const auto gpus = nvml::gpus({2, "0,1", "0,1"});
    gpus->measure();
    gpus->measure();
    const auto activities = gpus->measure();
    EXPECT_EQ(activities[0].sample[GpuMetric::busy], Reading::of(8700));
    EXPECT_EQ(activities[1].sample, GpuSample::unknown(Unknown::lost));
    EXPECT_EQ(activities[1].name.uuid, "GPU-1-fake");
    for (int i = 0; i < 30; ++i) {
        gpus->measure();
    }
    EXPECT_EQ(gpus->measure()[1].sample[GpuMetric::busy], Reading::of(8700));
}

TEST(Gpus, WithoutADriverAllIsUnknown)
{
    const Scenario scenario("init=9\n");
    EXPECT_EQ(only(*nvml::gpus({1, "", ""})), GpuSample::unknown(Unknown::no_driver));
}

TEST(Gpus, ThoseOfOtherJobsAreNotRead)
{
    // Slurm's GPUs 0 and 1 on a node that shows all four, with device files numbered differently.
    const Scenario scenario(std::string("gpus=4\n") + k_tesla +
                            "gpu=0 minor=3\ngpu=1 minor=2\ngpu=2 minor=1\ngpu=3 minor=0\n");
    const auto activities = nvml::gpus({2, "0,1", "0,1"})->measure();
    ASSERT_EQ(activities.size(), 2U);
    EXPECT_EQ(activities[0].sample, GpuSample::unknown(Unknown::which_gpu));
    EXPECT_EQ(activities[1].sample, GpuSample::unknown(Unknown::which_gpu));
}

TEST(Gpus, GpusThatMayNotBeOpenedAreNotTheJobs)
{
    const Scenario scenario(std::string("gpus=3\n") + k_tesla +
                            "gpu=0 call=HandleByIndex err=4\ngpu=2 call=HandleByIndex err=4\n");
    const auto activities = nvml::gpus({1, "0", "1"})->measure();
    EXPECT_EQ(activities[0].name.uuid, "GPU-1-fake");
    EXPECT_EQ(activities[0].sample[GpuMetric::busy], Reading::of(8700));
}

TEST(Gpus, APartOfAGpuIsMeasuredByGpmAlone)
{
    const Scenario scenario("gpus=1\ngpu=0 migs=2 gpm=1\n"
                            "gpu=0:1 total=10737418240 used=1024 gpm1=40 gpm2=30.5\n"
                            "util=99 power=400000\n");
    const auto gpus = nvml::gpus({1, "MIG-0.1-fake", "0"});
    EXPECT_EQ(only(*gpus)[GpuMetric::busy], Reading(Unknown::not_measured));
    const GpuSample sample = only(*gpus);
    EXPECT_EQ(sample[GpuMetric::busy], Reading::of(4000));
    EXPECT_EQ(sample[GpuMetric::sm_active], Reading::of(3050));
    EXPECT_EQ(sample[GpuMetric::memory_used], Reading::of(1));
    EXPECT_EQ(sample[GpuMetric::power], Reading(Unknown::not_supported)) << "the whole GPU's";
}

TEST(Gpus, APartOfAGpuWithoutGpmIsUnknownAndNotIdle)
{
    const Scenario scenario("gpus=1\ngpu=0 migs=1\ntotal=1024000 used=1024\n");
    const auto gpus = nvml::gpus({1, "MIG-0.0-fake", "0"});
    gpus->measure();
    EXPECT_EQ(only(*gpus)[GpuMetric::busy], Reading(Unknown::not_supported));
}

TEST(Gpus, GpmTellsTransfersAndAGapInItIsNotBridged)
{
    const Scenario scenario(std::string(k_tesla) + "gpm=1 gpm2=45.5 gpm20=12 gpm21=0.5 gpm60=1\n" +
                            "after=3 call=GpmSampleGet err=999\nafter=4 call=GpmSampleGet err=0\n");
    const auto gpus = nvml::gpus({1, "", ""});
    EXPECT_EQ(only(*gpus)[GpuMetric::sm_active], Reading(Unknown::not_measured));
    const GpuSample second = only(*gpus);
    EXPECT_EQ(second[GpuMetric::sm_active], Reading::of(4550));
    EXPECT_EQ(second[GpuMetric::pcie_tx], Reading::of(12 * 1024));
    EXPECT_EQ(second[GpuMetric::pcie_rx], Reading::of(512));
    EXPECT_EQ(second[GpuMetric::nvlink_rx], Reading::of(1024));
    EXPECT_EQ(second[GpuMetric::nvlink_tx], Reading(Unknown::not_supported));
    EXPECT_EQ(only(*gpus)[GpuMetric::sm_active], Reading(Unknown::failed));
    EXPECT_EQ(only(*gpus)[GpuMetric::sm_active], Reading(Unknown::not_measured));
    EXPECT_EQ(only(*gpus)[GpuMetric::sm_active], Reading::of(4550));
}

TEST(Gpus, OlderChipsCountNvlinkForEver)
{
    const Scenario scenario(std::string(k_tesla) +
                            "nvlink_tx=1e6 nvlink_rx=0 pcie_tx=7 pcie_rx=8\n");
    const auto gpus = nvml::gpus({1, "", ""});
    EXPECT_EQ(only(*gpus)[GpuMetric::nvlink_tx], Reading(Unknown::not_measured));
    // Long, compared with an interruption between the counter and its time.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const GpuSample sample = only(*gpus);
    ASSERT_TRUE(sample[GpuMetric::nvlink_tx].known());
    EXPECT_NEAR(static_cast<double>(*sample[GpuMetric::nvlink_tx].value()), 1e6, 2e5);
    EXPECT_EQ(sample[GpuMetric::nvlink_rx], Reading::of(0)) << "measured, and none";
    EXPECT_EQ(sample[GpuMetric::pcie_tx], Reading::of(7));
    EXPECT_EQ(sample[GpuMetric::pcie_rx], Reading::of(8));
}

TEST(Gpus, TheDriverIsInitialisedOnce)
{
    const std::string log = testing::TempDir() + "/nvml-log-" + std::to_string(::getpid());
    const Scenario scenario(std::string(k_tesla) + "log=" + log + "\n");
    const auto gpus = nvml::gpus({1, "", ""});
    EXPECT_FALSE(std::filesystem::exists(log)) << "before anybody looks";
    for (int i = 0; i < 50; ++i) {
        gpus->measure();
    }
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    EXPECT_EQ(text.str(), "init\n");
    std::filesystem::remove(log);
}

TEST(Gpus, AJobWithoutGpusAsksNobody)
{
    const Scenario scenario("init=9\n");
    EXPECT_TRUE(nvml::gpus({})->measure().empty());
}

} // namespace
} // namespace gpuq::nvml
