// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/run_channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/wait.h>
#include <thread>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr const char* k_run = "20261120T131158.042Z-0f3a9c1e5b7d2468";

/// Replaces gpuq with a script that logs its arguments and keeps running.
class RunChannelTest : public testing::Test {
protected:
    RunChannelTest()
    {
        std::string name = "/tmp/gpuq-door-XXXXXX";
        m_directory = ::mkdtemp(name.data());
        std::ofstream(program()) << "#!/bin/sh\necho \"$3 $4\" >>" << m_directory
                                 << "/asked\nexec sleep 60\n";
        std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
    }
    ~RunChannelTest() override { std::filesystem::remove_all(m_directory); }

    std::string program() const { return m_directory + "/gpuq"; }

    wire::remote::Start start() const
    {
        wire::remote::Start made;
        made.forwards = {"localhost:80"};
        return made;
    }

    /// Waits for `lines` logged requests and returns the log.
    std::string asked(std::size_t lines) const
    {
        const std::string line = std::string(k_run) + " localhost:80\n";
        std::string text;
        for (int i = 0; i < 500 && text.size() < lines * line.size(); ++i) {
            std::this_thread::sleep_for(10ms);
            std::ifstream in(m_directory + "/asked");
            text.assign(std::istreambuf_iterator<char>(in), {});
        }
        return text;
    }

    std::string m_directory;
};

TEST_F(RunChannelTest, IsOpenedAgainWhenTheRunIsInAnotherJob)
{
    const std::string line = std::string(k_run) + " localhost:80\n";
    RunChannel run_channel(program(), start());
    EXPECT_EQ(run_channel.open({k_run, 8, 1, 0, 0}).value(), true);
    EXPECT_EQ(asked(1), line);
    EXPECT_EQ(run_channel.open({k_run, 8, 1, 500, 0}).value(), false); // same job: same connection
    EXPECT_EQ(run_channel.open({k_run, 9, 2, 0, 0}).value(), true);
    EXPECT_EQ(asked(2), line + line);
    // The previous process was terminated: it no longer leads into the run.
    int status = 0;
    EXPECT_GT(::wait(&status), 0);
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(RunChannelTest, TellsWhyItIsShutInTheWordsThatSayIt)
{
    std::ofstream(program())
        << "#!/bin/sh\n"
           "echo 'gpuq: srun: error: n0: task 0: Exited with exit code 4' >&2\n"
           "echo 'gpuq: run 7 has no node yet' >&2\n"
           "echo 'and more' >&2\n";
    RunChannel run_channel(program(), start());
    ASSERT_TRUE(run_channel.open({k_run, 8, 1, 0, 0}));
    ::poll(nullptr, 0, 200);
    EXPECT_EQ(run_channel.channel()->read_some().value_or(""), "");
    int status = 0;
    for (pid_t pid = 0; (pid = ::wait(&status)) > 0;) {
        run_channel.on_child(pid);
    }
    EXPECT_EQ(run_channel.close(), "run 7 has no node yet");
    EXPECT_EQ(run_channel.channel(), nullptr);
    // A process that has answered ended for a good reason, most likely the end of the run.
    ASSERT_TRUE(run_channel.open({k_run, 8, 1, 0, 0}));
    run_channel.answered();
    ::wait(&status);
    EXPECT_EQ(run_channel.close(), "");
}

} // namespace
} // namespace gpuq::remote
