// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/proposer.h"

#include "core/layout.h"
#include "posix/store.h"
#include "supervisor/stage.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"
#include "sweeps/taker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/resource.h>

namespace gpuq::supervisor {
namespace {

using Answer = Proposer::Answer;
using sweeps::k_numbered_sweep;

/// A worker of a sweep whose tries come from a program.
class ProposerTest : public testing::Test {
protected:
    ProposerTest()
    {
        m_sweep.run.request.work_dir = "/";
        m_sweep.propose = sweeps::Proposals{{"/bin/echo", R"({"n": 1})"}, {}, 10};
        EXPECT_TRUE(write_sweep(*m_store, m_sweep, {}));
    }
    ~ProposerTest() override { std::filesystem::remove_all(m_root); }

    Result<Answer> ask() { return m_proposer.ask(EventLoop::Clock::now()); }
    /// The first answer but `pending`.
    Answer awaited()
    {
        Answer last = Answer::pending;
        eventually([&] {
            last = ask().value();
            return last != Answer::pending;
        });
        return last;
    }
    std::string file(const std::string& path) const { return m_root + "/" + path; }
    /// The journal of this worker cannot be read while it exists.
    std::string unreadable() const
    {
        return file(layout::sweep_worker(k_numbered_sweep, m_self.worker));
    }

private:
    static std::string new_directory()
    {
        std::string name = "/tmp/gpuq-proposer-XXXXXX";
        return ::mkdtemp(name.data());
    }
    std::string m_root = new_directory();
    std::unique_ptr<Store> m_store = PosixStore::open(m_root).value();
    sweeps::Sweep m_sweep = sweeps::numbered_sweep("cal");
    sweeps::Claimant m_self{sweeps::numbered_key(1), LinkNumber{1}};
    sweeps::TryTaker m_taker{*m_store, k_numbered_sweep, m_self, [](const auto&) { return false; }};
    Proposer m_proposer{*m_store, m_sweep, m_taker};
};

TEST_F(ProposerTest, AddsWhatItsProgramProposes)
{
    EXPECT_EQ(awaited(), Answer::added);
}

TEST_F(ProposerTest, AsksAgainAfterAnErrorOfTheDisk)
{
    std::filesystem::create_directories(unreadable());
    EXPECT_FALSE(ask());
    std::filesystem::remove(unreadable());
    EXPECT_EQ(awaited(), Answer::added);
}

TEST_F(ProposerTest, AsksAgainAfterItCouldNotStartItsProgram)
{
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    for (rlim_t count = 0; count < 20; ++count) {
        // Fails at another descriptor each time.
        const rlimit few{count, before.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
        const auto answer = ask();
        ::setrlimit(RLIMIT_NOFILE, &before);
        if (answer) {
            break;
        }
    }
    EXPECT_EQ(awaited(), Answer::added);
}

} // namespace
} // namespace gpuq::supervisor
