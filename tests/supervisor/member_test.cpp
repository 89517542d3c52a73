// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/member.h"

#include "supervisor/base/descriptor.h"
#include "supervisor/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using Strings = std::vector<std::string>;

Strings described(Strings variables, const MemberPlan& plan)
{
    Environment environment(std::move(variables));
    describe_rank(environment, plan);
    Strings texts = environment.texts();
    std::erase_if(texts, [](const std::string& text) { return text.starts_with("SLURM_"); });
    std::sort(texts.begin(), texts.end());
    return texts;
}

const Strings k_task{"SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NTASKS=4", "SLURM_NODEID=1",
                     "CUDA_VISIBLE_DEVICES=0,1,2,3"};

TEST(Member, IsTheRankThatItsTaskIs)
{
    MemberPlan plan;
    plan.tasks = 2;
    EXPECT_EQ(described(k_task, plan),
              (Strings{"CUDA_VISIBLE_DEVICES=0,1,2,3", "GROUP_RANK=1", "LOCAL_RANK=1",
                       "LOCAL_WORLD_SIZE=2", "NODE_RANK=1", "RANK=3", "WORLD_SIZE=4"}));
}

TEST(Member, SeesTheGpusThatAreItsOwn)
{
    MemberPlan plan;
    plan.tasks = 2;
    plan.gpus_per_task = 2;
    EXPECT_EQ(described(k_task, plan).front(), "CUDA_VISIBLE_DEVICES=2,3");
    Strings more = k_task;
    more.back() = "ROCR_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c";
    EXPECT_EQ(described(more, plan).back(), "WORLD_SIZE=4");
    EXPECT_EQ(described(more, plan)[5], "ROCR_VISIBLE_DEVICES=GPU-c");
}

TEST(Member, LeavesWhatTheUserHasSet)
{
    Strings variables = k_task;
    variables.emplace_back("RANK=9");
    EXPECT_EQ(described(variables, MemberPlan{})[6], "RANK=9");
}

TEST(Member, AloneOnItsNodeTellsALauncherWhichNodeThatIs)
{
    const Strings arguments = described(k_task, MemberPlan{});
    EXPECT_NE(std::find(arguments.begin(), arguments.end(), "PET_NODE_RANK=1"), arguments.end());
}

/// A rank on the run's first node, in a process group of its own.
class RankProcess {
public:
    explicit RankProcess(const std::string& script)
        : m_directory(new_directory())
    {
        m_pid = ::fork();
        if (m_pid == 0) {
            ::setpgid(0, 0);
            const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
            for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
                ::dup2(null.get(), fd);
            }
            const auto status = become_member(
                {"member", m_directory, "n1", "0", "1", "0", "-", "--", "/bin/sh", "-c", script},
                "n1", {});
            ::_exit(status ? *status : 125);
        }
        ::setpgid(m_pid, m_pid);
    }
    RankProcess(RankProcess&&) = delete;
    ~RankProcess()
    {
        ::kill(-m_pid, SIGKILL);
        if (!m_is_over) {
            ::waitpid(m_pid, nullptr, 0);
        }
        std::filesystem::remove_all(m_directory);
    }
    /// Its exit status; -1 if it does not end.
    int wait()
    {
        int status = 0;
        m_is_over = eventually([&] { return ::waitpid(m_pid, &status, WNOHANG) == m_pid; });
        return m_is_over && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::string log() const { return contents(m_directory + "/out.log.0"); }

private:
    static std::string new_directory()
    {
        std::string name = testing::TempDir() + "gpuq-rank-XXXXXX";
        return ::mkdtemp(name.data());
    }
    std::string m_directory;
    pid_t m_pid = -1;
    bool m_is_over = false;
};

TEST(Member, EndsAlthoughAProcessThatItLeftBehindPrints)
{
    RankProcess rank("(while :; do echo noise; sleep 0.05; done) & sleep 0.2; echo last; exit 3");
    EXPECT_EQ(rank.wait(), 3);
    EXPECT_NE(rank.log().find("last\n"), std::string::npos);
}

TEST(Member, WaitsForTheOutputOfWhatItLeftBehind)
{
    RankProcess rank("(sleep 0.1; echo late) & exit 3");
    EXPECT_EQ(rank.wait(), 3);
    EXPECT_EQ(rank.log(), "late\n");
}

} // namespace
} // namespace gpuq::supervisor
