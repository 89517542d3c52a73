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
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

using Answer = Proposer::Answer;
using sweeps::k_numbered_sweep;

/// A disk that can be full.
class ProposalStore : public PosixStore {
public:
    explicit ProposalStore(std::string root)
        : PosixStore(std::move(root))
    {
    }
    Result<void> write(const std::string& path, std::string_view content) override
    {
        return is_full ? no_space(path) : PosixStore::write(path, content);
    }
    Result<void> write_once(const std::string& path, std::string_view content) override
    {
        return is_full ? no_space(path) : PosixStore::write_once(path, content);
    }
    bool is_full = false;

private:
    static Error no_space(const std::string& path)
    {
        return fail(Error::Kind::io, path + ": No space left on device");
    }
};

/// A worker of a sweep whose tries come from a program.
class ProposerTest : public testing::Test {
protected:
    ProposerTest()
    {
        m_sweep.run.request.work_dir = "/";
        m_sweep.propose = sweeps::Proposals{{"/bin/echo", R"({"n": 1})"}, {}, 10};
        EXPECT_TRUE(write_sweep(m_store, m_sweep, {}));
    }

    /// Proposes with a script whose executions are counted.
    void propose_with(const std::string& script)
    {
        m_sweep.propose->command = {"/bin/sh", "-c", "echo >>" + file("asked") + "; " + script};
    }
    std::size_t times_asked() const { return contents(file("asked")).size(); }
    /// Fails to record the answer of the program.
    void ask_with_a_full_disk()
    {
        m_store.is_full = true;
        EXPECT_TRUE(eventually([&] { return !ask(); }));
        for (int again = 0; again < 3; ++again) {
            EXPECT_FALSE(ask()) << "the worker is not waiting for the program";
        }
        m_store.is_full = false;
    }

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
    std::string file(const std::string& path) const { return m_directory.path + "/" + path; }
    /// The journal of this worker cannot be read while it exists.
    std::string unreadable() const
    {
        return file(layout::sweep_worker(k_numbered_sweep, m_self.worker));
    }

private:
    struct Directory {
        Directory() { ::mkdtemp(path.data()); }
        Directory(Directory&&) = delete;
        ~Directory() { std::filesystem::remove_all(path); }
        std::string path = "/tmp/gpuq-proposer-XXXXXX";
    };
    Directory m_directory; ///< removed when the program has ended
    ProposalStore m_store{m_directory.path};
    sweeps::Sweep m_sweep = sweeps::numbered_sweep("cal");
    sweeps::Claimant m_self{sweeps::numbered_key(1), LinkNumber{1}};
    sweeps::TryTaker m_taker{m_store, k_numbered_sweep, m_self, [](const auto&) { return false; }};
    Proposer m_proposer{m_store, m_sweep, m_taker};
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

TEST_F(ProposerTest, KeepsAnAnswerThatItCannotWriteDown)
{
    propose_with("echo '{\"n\": 1}'");
    ask_with_a_full_disk();
    EXPECT_EQ(ask().value(), Answer::added);
    EXPECT_EQ(times_asked(), 1U);
}

TEST_F(ProposerTest, KeepsTheEndOfTheListThatItCannotWriteDown)
{
    propose_with("exit 1");
    ask_with_a_full_disk();
    EXPECT_EQ(ask().value(), Answer::none);
    EXPECT_EQ(times_asked(), 1U);
}

} // namespace
} // namespace gpuq::supervisor
