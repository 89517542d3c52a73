// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/idle_keeper.h"

#include "supervisor/base/link_files.h"
#include "supervisor/stage.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using State = telemetry::IdleVerdict::State;
using Steady = IdleKeeper::Steady;

const telemetry::IdleRule k_rule{30s, 10s, 0ms, 1};

/// A keeper and the other end of its pipe.
struct Watched {
    IdleKeeper keeper{"gpu", k_rule, /*measured=*/true};
    Descriptor sampler;
    Steady began = Steady{} + 1h;

    Watched()
    {
        auto pipe = make_pipe();
        set_nonblocking(pipe->read.get());
        keeper.watch(std::move(pipe->read));
        sampler = std::move(pipe->write);
        keeper.began(began);
    }
    /// Sends samples without use for these seconds. Returns the last verdict.
    std::optional<telemetry::IdleVerdict> unused(int from, int to)
    {
        for (int second = from; second <= to; ++second) {
            SampledActivity sampled{began, {}};
            sampled.activity.elapsed = std::chrono::seconds(second);
            sampled.activity.covers = 1s;
            sampled.activity.says = telemetry::Activity::Says::unused;
            EXPECT_EQ(::write(sampler.get(), &sampled, sizeof sampled),
                      static_cast<ssize_t>(sizeof sampled));
        }
        return keeper.read();
    }
};

TEST(IdleKeeper, JudgesByTheSamplesThatCome)
{
    Watched watched;
    EXPECT_FALSE(watched.keeper.read());
    EXPECT_EQ(watched.unused(1, 10)->state, State::works);
    EXPECT_EQ(watched.unused(11, 25)->state, State::warn);
    EXPECT_EQ(watched.unused(26, 30)->state, State::release);
}

TEST(IdleKeeper, InputAndOutputAreWork)
{
    Watched watched;
    watched.unused(1, 25);
    watched.keeper.printed(watched.began + 25s);
    EXPECT_EQ(watched.unused(26, 35)->state, State::works);
    watched.keeper.input(1, watched.began + 40s);
    EXPECT_EQ(watched.unused(36, 69)->state, State::warn);
    watched.keeper.input(1, watched.began + 69s); // no new input
    EXPECT_EQ(watched.unused(70, 70)->state, State::release);
}

TEST(IdleKeeper, ASamplerThatIsGoneTellsNothing)
{
    Watched watched;
    watched.unused(1, 29);
    watched.sampler.reset();
    EXPECT_FALSE(watched.keeper.read());
    EXPECT_LT(watched.keeper.fd(), 0);
}

/// A state directory with one run.
struct Released : testing::Test {
    void SetUp() override
    {
        char name[] = "/tmp/gpuq-releases-XXXXXX";
        root = ::mkdtemp(name);
        std::filesystem::create_directories(root + "/" + layout::run_dir(key));
        std::filesystem::create_directories(root + "/index");
    }
    void TearDown() override { std::filesystem::remove_all(root); }

    const RunKey key = RunKey::make(Time(), {1, 2, 3, 4, 5, 6, 7, 8});
    const Time now{std::chrono::hours(500'000)};
    std::string root;
};

TEST_F(Released, AreSoManyInAnHour)
{
    const auto directory = RunDirectory::open(root, key);
    ASSERT_TRUE(directory);
    EXPECT_TRUE(directory->take_release("a-1", 2, now));
    EXPECT_TRUE(directory->take_release("b-1", 2, now + 30min));
    EXPECT_FALSE(directory->take_release("c-1", 2, now + 59min));
    EXPECT_FALSE(std::filesystem::exists(root + "/index/released/c-1"));
    EXPECT_TRUE(directory->take_release("c-1", 2, now + 61min));
    EXPECT_FALSE(std::filesystem::exists(root + "/index/released/a-1")) << "an hour ago";
}

TEST_F(Released, AreNoneWhereNobodyCanCount)
{
    const auto directory = RunDirectory::open(root, key);
    put(root + "/index/released", "no folder");
    EXPECT_FALSE(directory->take_release("a-1", 2, now));
    std::filesystem::remove(root + "/index/released");
    std::filesystem::create_directory(root + "/index/released");
    put(root + "/index/released/x", "no time");
    EXPECT_FALSE(directory->take_release("a-1", 1, now)) << "it may be of this hour";
}

} // namespace
} // namespace gpuq::supervisor
