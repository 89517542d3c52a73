// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/sampling.h"

#include <gtest/gtest.h>

#include <map>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

const Steady::time_point k_now = Steady::time_point{} + 1h;

GpuSample busy()
{
    GpuSample sample = GpuSample::unknown(Unknown::not_supported);
    sample[GpuMetric::busy] = Reading::of(5000);
    return sample;
}

DriverState state(std::optional<Steady::duration> asked, std::optional<Steady::duration> answered)
{
    DriverState made;
    made.asked = asked ? std::optional(k_now - *asked) : std::nullopt;
    made.answered = answered ? std::optional(k_now - *answered) : std::nullopt;
    made.last = {GpuReading{{}, busy()}};
    return made;
}

Reading seen(std::optional<Steady::duration> asked, std::optional<Steady::duration> answered)
{
    return gpus_at(state(asked, answered), 1, k_now).at(0)[GpuMetric::busy];
}

TEST(Sampling, AnAnswerCountsForASample)
{
    EXPECT_EQ(seen(std::nullopt, 900ms), Reading::of(5000));
    EXPECT_EQ(seen(1500ms, 2500ms), Reading::of(5000)) << "a slow answer is on its way";
}

TEST(Sampling, ADriverThatDoesNotAnswerHangsWithinFiveSeconds)
{
    EXPECT_EQ(seen(3999ms, 4900ms), Reading(Unknown::not_measured));
    EXPECT_EQ(seen(4000ms, 4900ms), Reading(Unknown::hung));
    EXPECT_EQ(seen(24h, 24h), Reading(Unknown::hung));
    EXPECT_LE(k_driver_patience + 1s, 5s);
}

TEST(Sampling, AnOldAnswerIsNone)
{
    EXPECT_EQ(seen(std::nullopt, 10s), Reading(Unknown::not_measured));
    EXPECT_EQ(seen(std::nullopt, std::nullopt), Reading(Unknown::not_measured));
}

JobGpus held(const std::map<std::string, std::string>& variables, const char* variable,
             std::size_t asked_for)
{
    return held_gpus(
        [&](const char* name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::nullopt : std::optional(found->second);
        },
        variable, asked_for);
}

TEST(Sampling, TheEnvironmentSaysWhichGpus)
{
    const JobGpus step =
        held({{"SLURM_STEP_GPUS", "2,3"}, {"SLURM_JOB_GPUS", "7"}, {"CUDA_VISIBLE_DEVICES", "0,1"}},
             k_gpus_of_step, 4);
    EXPECT_EQ(step.count, 2U);
    EXPECT_EQ(step.ids, "2,3");
    EXPECT_EQ(step.visible, "0,1");
    EXPECT_EQ(held({{"SLURM_STEP_GPUS", "2,3"}, {"SLURM_JOB_GPUS", "1"}}, k_gpus_of_job, 0).ids,
              "1");
    const JobGpus parts =
        held({{"SLURM_JOB_GPUS", "0"}, {"CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b"}}, k_gpus_of_job, 1);
    EXPECT_EQ(parts.count, 2U);
}

TEST(Sampling, WhereItDoesNotWhatWasAskedForIsTheirNumber)
{
    EXPECT_EQ(held({}, k_gpus_of_step, 3).count, 3U);
    EXPECT_EQ(held({}, k_gpus_of_step, 0).count, 0U);
    EXPECT_EQ(held({}, k_gpus_of_step, 1000).count, k_most_gpus);
}

} // namespace
} // namespace gpuq::supervisor
