// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/run_door.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr const char* k_key = "20261120T131158.042Z-0f3a9c1e5b7d2468";

/// In the place of gpuq: writes down what it is asked for, and stays.
class RunDoorTest : public testing::Test {
protected:
    RunDoorTest()
    {
        std::string name = "/tmp/gpuq-door-XXXXXX";
        m_folder = ::mkdtemp(name.data());
        std::ofstream(program()) << "#!/bin/sh\necho \"$4 $5\" >>" << m_folder
                                 << "/asked\nexec sleep 60\n";
        std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
    }
    ~RunDoorTest() override { std::filesystem::remove_all(m_folder); }

    std::string program() const { return m_folder + "/gpuq"; }

    wire::remote::Start start() const
    {
        wire::remote::Start made;
        made.forwards = {"localhost:80"};
        return made;
    }

    /// So many lines of what it was asked for, once they are there.
    std::string asked(std::size_t lines) const
    {
        const std::string line = std::string(k_key) + " localhost:80\n";
        std::string text;
        for (int i = 0; i < 500 && text.size() < lines * line.size(); ++i) {
            std::this_thread::sleep_for(10ms);
            std::ifstream in(m_folder + "/asked");
            text.assign(std::istreambuf_iterator<char>(in), {});
        }
        return text;
    }

    std::string m_folder;
};

TEST_F(RunDoorTest, IsOpenedAgainWhenTheRunIsInAnotherJob)
{
    const std::string line = std::string(k_key) + " localhost:80\n";
    RunDoor door(program(), start());
    ASSERT_TRUE(door.open({k_key, 8, 1, 0, 0}));
    EXPECT_EQ(asked(1), line);
    ASSERT_TRUE(door.open({k_key, 8, 1, 500, 0})); // more was shown: the same door
    ASSERT_TRUE(door.open({k_key, 9, 2, 0, 0}));
    EXPECT_EQ(asked(2), line + line);
    // The old one is gone: whoever is still in there is not in the run.
    int status = 0;
    EXPECT_GT(::wait(&status), 0);
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(RunDoorTest, RemovesTheFolderOfOneThatWasKilled)
{
    std::string left = "/tmp/gpuq-forward-XXXXXX";
    ASSERT_NE(::mkdtemp(left.data()), nullptr);
    std::ofstream(left + "/ssh_config") << "Host gpuq-7\n";
    const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2);
    std::filesystem::last_write_time(left, long_ago);
    std::string young = "/tmp/gpuq-forward-XXXXXX";
    ASSERT_NE(::mkdtemp(young.data()), nullptr);
    RunDoor lives(program(), start());
    ASSERT_TRUE(lives.open({k_key, 8, 1, 0, 0}));
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::remove(young)) << "its owner may not have locked it yet";
    std::string folder;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const auto target = std::filesystem::read_symlink(each.path(), error).string();
        folder = target.starts_with("/tmp/gpuq-forward-") ? target : folder;
    }
    ASSERT_FALSE(folder.empty());
    std::filesystem::last_write_time(folder, long_ago);
    RunDoor another(program(), start());
    ASSERT_TRUE(another.open({k_key, 8, 1, 0, 0}));
    EXPECT_TRUE(std::filesystem::exists(folder));
}

TEST_F(RunDoorTest, TellsWhyItIsShutInTheWordsThatSayIt)
{
    std::ofstream(program())
        << "#!/bin/sh\n"
           "echo 'gpuq: srun: error: n0: task 0: Exited with exit code 4' >&2\n"
           "echo 'gpuq: no sshd on node n0' >&2\n"
           "echo 'Connection closed by UNKNOWN port 65535' >&2\n";
    RunDoor door(program(), start());
    ASSERT_TRUE(door.open({k_key, 8, 1, 0, 0}));
    int status = 0;
    for (pid_t pid = 0; (pid = ::wait(&status)) > 0;) {
        door.on_child(pid);
    }
    const auto reached = door.reach(0);
    ASSERT_FALSE(reached);
    EXPECT_EQ(reached.error().text, "no sshd on node n0");
}

} // namespace
} // namespace gpuq::remote
