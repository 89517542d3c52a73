// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/idle_keeper.h"

#include "core/timestamp.h"
#include "supervisor/base/link_files.h"
#include "supervisor/stage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using State = telemetry::IdleVerdict::State;
using Step = IdleKeeper::Step;
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
    /// Sends samples without use for these seconds.
    Step unused(int from, int to)
    {
        for (int second = from; second <= to; ++second) {
            SampledActivity sampled{began, {}};
            sampled.activity.elapsed = std::chrono::seconds(second);
            sampled.activity.covers = 1s;
            sampled.activity.says = telemetry::Activity::Says::unused;
            EXPECT_EQ(::write(sampler.get(), &sampled, sizeof sampled),
                      static_cast<ssize_t>(sizeof sampled));
        }
        return keeper.next(/*ends_already=*/false);
    }
};

TEST(IdleKeeper, JudgesByTheSamplesThatCome)
{
    Watched watched;
    EXPECT_EQ(watched.keeper.next(false), Step::none);
    EXPECT_EQ(watched.unused(1, 10), Step::none);
    EXPECT_EQ(watched.unused(11, 25), Step::warn);
    EXPECT_EQ(watched.unused(26, 30), Step::ask);
    EXPECT_EQ(watched.keeper.verdict().state, State::release);
}

TEST(IdleKeeper, WarnsOnceAndReportsThatTheRunWorksAgain)
{
    Watched watched;
    EXPECT_EQ(watched.unused(1, 25), Step::warn);
    const IdleFinding finding = watched.keeper.report(IdleFinding::State::warned, Time{});
    EXPECT_EQ(finding.partition, "gpu");
    EXPECT_EQ(finding.left, 5s);
    EXPECT_EQ(watched.unused(26, 26), Step::none);
    watched.keeper.printed(watched.began + 26s);
    EXPECT_EQ(watched.unused(27, 27), Step::report_work);
    watched.keeper.report(IdleFinding::State::works, Time{});
    EXPECT_EQ(watched.unused(28, 28), Step::none);
}

TEST(IdleKeeper, ReleasesAfterThePermissionIfTheNextSampleStillCallsForIt)
{
    Watched watched;
    EXPECT_EQ(watched.unused(1, 30), Step::ask);
    EXPECT_EQ(watched.unused(31, 31), Step::none) << "asked already";
    watched.keeper.release_answered(true);
    EXPECT_EQ(watched.keeper.next(false), Step::none) << "no sample since";
    EXPECT_EQ(watched.unused(32, 32), Step::release);
}

TEST(IdleKeeper, AnInputAfterThePermissionRevokesIt)
{
    Watched watched;
    EXPECT_EQ(watched.unused(1, 30), Step::ask);
    watched.keeper.release_answered(true);
    watched.keeper.input(1, watched.began + 31s);
    EXPECT_EQ(watched.unused(31, 31), Step::none);
    EXPECT_EQ(watched.unused(32, 61), Step::ask) << "not released by the old permission";
}

TEST(IdleKeeper, ARefusedReleaseStartsTheTimeAgain)
{
    Watched watched;
    EXPECT_EQ(watched.unused(1, 30), Step::ask);
    watched.keeper.release_answered(false);
    watched.keeper.report(IdleFinding::State::put_off, Time{});
    EXPECT_EQ(watched.unused(31, 40), Step::none);
    EXPECT_EQ(watched.unused(41, 55), Step::warn);
    watched.keeper.report(IdleFinding::State::warned, Time{});
    EXPECT_EQ(watched.unused(56, 61), Step::ask);
}

TEST(IdleKeeper, ARunThatEndsForAnotherReasonIsLeftAlone)
{
    Watched watched;
    EXPECT_EQ(watched.unused(1, 10), Step::none);
    SampledActivity sampled{watched.began, {}};
    sampled.activity.elapsed = 30s;
    sampled.activity.covers = 20s;
    sampled.activity.says = telemetry::Activity::Says::unused;
    ASSERT_EQ(::write(watched.sampler.get(), &sampled, sizeof sampled),
              static_cast<ssize_t>(sizeof sampled));
    EXPECT_EQ(watched.keeper.next(/*ends_already=*/true), Step::none);
}

TEST(IdleKeeper, InputAndOutputAreWork)
{
    Watched watched;
    watched.unused(1, 25);
    watched.keeper.printed(watched.began + 25s);
    watched.unused(26, 35);
    EXPECT_EQ(watched.keeper.verdict().state, State::works);
    watched.keeper.input(1, watched.began + 40s);
    watched.unused(36, 69);
    EXPECT_EQ(watched.keeper.verdict().state, State::warn);
    watched.keeper.input(1, watched.began + 69s); // no new input
    EXPECT_EQ(watched.unused(70, 70), Step::ask);
}

TEST(IdleKeeper, ASamplerThatIsGoneTellsNothing)
{
    Watched watched;
    watched.unused(1, 29);
    watched.sampler.reset();
    EXPECT_EQ(watched.keeper.next(false), Step::none);
    EXPECT_LT(watched.keeper.fd(), 0);
}

/// Files can be created, but nothing can be written to them.
class FullQuota {
public:
    FullQuota()
    {
        ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &m_before);
        const rlimit none{0, m_before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &none);
    }
    FullQuota(FullQuota&&) = delete;
    ~FullQuota() { ::setrlimit(RLIMIT_FSIZE, &m_before); }

private:
    rlimit m_before{};
};

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
    void add(const std::string& name, const std::string& text) const
    {
        std::filesystem::create_directory(root + "/index/released");
        put(root + "/index/released/" + name, text);
    }
    bool exists(const std::string& name) const
    {
        return std::filesystem::exists(root + "/index/released/" + name);
    }

    const Time now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
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
    add("x", "no time");
    EXPECT_FALSE(directory->take_release("a-1", 1, now)) << "it may be of this hour";
}

TEST_F(Released, AreNotUsedUpByAFullDisk)
{
    const auto directory = RunDirectory::open(root, key);
    {
        const FullQuota full;
        EXPECT_FALSE(directory->take_release("a-1", 1, now));
    }
    EXPECT_FALSE(exists("a-1"));
    EXPECT_TRUE(directory->take_release("b-1", 1, now));
}

TEST_F(Released, OfAnUnreadableFileAreThoseOfItsTime)
{
    const auto directory = RunDirectory::open(root, key);
    add("x", "");
    EXPECT_FALSE(directory->take_release("a-1", 1, now + 59min));
    EXPECT_TRUE(directory->take_release("a-1", 1, now + 61min));
    EXPECT_FALSE(exists("x"));
}

TEST_F(Released, InTheFutureDoNotCount)
{
    const auto directory = RunDirectory::open(root, key);
    add("x", to_iso8601(now + 3h));
    EXPECT_TRUE(directory->take_release("a-1", 1, now)) << "of a node whose clock was wrong";
    add("y", to_iso8601(now + 1min));
    EXPECT_FALSE(directory->take_release("b-1", 2, now)) << "of a clock that is a little ahead";
}

} // namespace
} // namespace gpuq::supervisor
