// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One hour on one GPU with 80 GiB, on a node with four cores; all measures are known.
struct Hour {
    Profile profile;
    GpuTime total{3500s, 100s, 0s};
    Given given{1, 1, {}, {}};

    Hour()
    {
        profile.links = {{LinkNumber{1}, Time{}, Time{} + 1h, {}, {"n"}}};
        profile.to = Time{} + 1h;
        profile.gpus.resize(1);
        profile.nodes.resize(1);
        profile.nodes[0].cores = 4;
        profile.gpus[0].memory_total = 80;
        know(Measure::busy, 97);
        know(Measure::memory_used, 70);
        know(Measure::cpu, 2);
        know(Measure::ram, 20);
    }
    void know(Measure measure, double value, double seconds = 3600)
    {
        const auto place = static_cast<std::size_t>(measure);
        profile.all[place] = {};
        profile.quantiles[place] = {};
        profile.all[place].add(value, seconds);
        profile.quantiles[place].add(value, seconds);
        profile.gpus[0].measured[place] = profile.all[place];
    }
    void spend(Phase phase, std::chrono::seconds time)
    {
        profile.phases[static_cast<std::size_t>(phase)] = time;
        total.idle += time;
        total.busy -= time;
    }
    std::vector<std::string> advice() const
    {
        std::vector<std::string> texts;
        for (const ProfileAdvice& one : advice_of(profile, total, given)) {
            const auto codes = advice_codes();
            EXPECT_NE(std::find(codes.begin(), codes.end(), one.code), codes.end()) << one.code;
            texts.push_back(one.text);
        }
        return texts;
    }
};

TEST(ProfileAdvice, ARunThatGoesWellGetsNone)
{
    EXPECT_THAT(Hour().advice(), IsEmpty());
}

TEST(ProfileAdvice, ASmallerGpuWouldDo)
{
    Hour hour;
    hour.know(Measure::memory_used, 2.1);
    EXPECT_THAT(hour.advice(),
                ElementsAre("GPU memory: 2.1 of 80 GiB used at most: a smaller GPU would do (-g "
                            "3G+), or larger batches"));
    hour.know(Measure::memory_used, 2.1, 1800); // the other half hour was not measured
    EXPECT_THAT(hour.advice(), IsEmpty());
}

TEST(ProfileAdvice, TheDataLoaderIsShortOfCpus)
{
    Hour hour;
    hour.spend(Phase::waiting, 2340s);
    hour.know(Measure::cpu, 3.92);
    EXPECT_THAT(hour.advice(),
                ElementsAre("GPU busy 32 %, the CPUs at 98 % of their 4 cores: data preparation "
                            "is short of CPUs (request -c 8)"));
    hour.profile.nodes[0].cores.reset(); // number of cores unknown
    EXPECT_THAT(hour.advice(), ElementsAre(HasSubstr("The GPU waits 65 % of the time")));
    hour.given.cpus = 4;
    EXPECT_THAT(hour.advice(), ElementsAre(HasSubstr("(request -c 8)")));
}

TEST(ProfileAdvice, WaitingSavingAndIdlingAreTold)
{
    Hour hour;
    hour.spend(Phase::waiting, 900s);
    hour.spend(Phase::saving, 400s);
    EXPECT_THAT(hour.advice(),
                ElementsAre(HasSubstr("The GPU waits 25 % of the time while the CPUs or the disk"),
                            HasSubstr("The GPU waits 11 % of the time for checkpoints")));
    Hour idle;
    idle.total = {1800s, 1800s, 0s};
    EXPECT_THAT(idle.advice(), ElementsAre(HasSubstr("The GPU is idle 50 % of the time")));
    Hour late;
    late.spend(Phase::start_up, 1200s);
    EXPECT_THAT(late.advice(), ElementsAre(HasSubstr("33 % of the GPU time is over before")));
}

TEST(ProfileAdvice, AGpuThatIsNotUsedIsAllThatMatters)
{
    Hour hour;
    hour.total = {2s, 3598s, 0s};
    hour.know(Measure::memory_used, 0.4);
    EXPECT_THAT(hour.advice(), ElementsAre(HasSubstr("The GPU was busy 0.1 % of the time")));
}

TEST(ProfileAdvice, OneOfTwoGpusIsNotUsed)
{
    Hour hour;
    hour.profile.gpus.push_back(hour.profile.gpus[0]);
    Measured& busy = hour.profile.gpus[1].measured[static_cast<std::size_t>(Measure::busy)];
    busy = {};
    busy.add(0, 3600);
    EXPECT_THAT(hour.advice(),
                ElementsAre("1 of 2 GPUs was busy less than 1 % of the time: the program does not "
                            "use it; start it for 2 GPUs or ask for fewer"));
}

TEST(ProfileAdvice, OfMemoryAndCoresOnlyWhatWasAskedForIsJudged)
{
    Hour hour;
    hour.know(Measure::ram, 3.8);
    hour.know(Measure::cpu, 0.9);
    EXPECT_THAT(hour.advice(), IsEmpty());
    hour.given.ram_gib = 64;
    hour.given.cpus = 16;
    EXPECT_THAT(hour.advice(),
                ElementsAre("RAM: 6 % of the 64 GiB that were asked for used at most: --mem 6G "
                            "would do",
                            "CPU: 0.9 of the 16 cores that were asked for used in 95 % of the "
                            "time: -c 2 would do"));
    hour.know(Measure::ram, 63);
    hour.know(Measure::cpu, 12);
    EXPECT_THAT(hour.advice(), ElementsAre(HasSubstr("beyond that the program is killed")));
}

TEST(ProfileAdvice, NothingIsSaidOfWhatIsUnknown)
{
    Hour hour;
    hour.profile.gpus[0] = {};
    hour.profile.nodes[0] = {};
    hour.profile.all = {};
    hour.given = {1, 1, 16, 64};
    hour.total = {0s, 0s, 3600s};
    EXPECT_THAT(hour.advice(), IsEmpty());
    hour.total = {0s, 1000s, 2600s}; // too little is known
    EXPECT_THAT(hour.advice(), IsEmpty());
    hour.profile = Profile{};
    hour.total = {};
    EXPECT_THAT(hour.advice(), IsEmpty());
}

TEST(ProfileAdvice, AMinuteIsTooShortToJudge)
{
    Hour hour;
    hour.total = {0s, 50s, 0s};
    hour.profile.links[0].to = Time{} + 50s;
    hour.know(Measure::memory_used, 1, 50);
    EXPECT_THAT(hour.advice(), IsEmpty());
}

} // namespace
} // namespace gpuq::telemetry
