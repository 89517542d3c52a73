// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Kind = Host::Answer::Kind;
using testing::HasSubstr;

class HostTest : public testing::Test {
protected:
    HostTest()
    {
        std::string name = fs::temp_directory_path() / "gpuq-host-XXXXXX";
        m_directory = ::mkdtemp(name.data());
    }
    ~HostTest() override { fs::remove_all(m_directory); }

    PosixHost m_host;
    std::string m_directory;
};

TEST_F(HostTest, TellsOfAFolderAndItsFileSystem)
{
    ASSERT_EQ(::chmod(m_directory.c_str(), 0750), 0);
    const DirectoryFacts facts = m_host.directory(m_directory).value();
    EXPECT_TRUE(facts.exists);
    EXPECT_TRUE(facts.writable);
    EXPECT_EQ(facts.owner, ::geteuid());
    EXPECT_EQ(facts.mode, 0750U);
    EXPECT_NE(facts.file_system, "");
    EXPECT_GT(facts.total_bytes, facts.free_bytes);
    EXPECT_EQ(m_host.directory("/proc").value().file_system,
              "0x9fa0"); // file system without a name
    EXPECT_EQ(m_host.directory("/dev/shm").value().reach, DirectoryFacts::Reach::memory);
}

TEST_F(HostTest, TellsOfTheNearestFolderThatIsThere)
{
    const DirectoryFacts facts = m_host.directory(m_directory + "/not/there").value();
    EXPECT_FALSE(facts.exists);
    EXPECT_TRUE(facts.writable);
    EXPECT_FALSE(m_host.directory("relative"));
    std::fclose(std::fopen((m_directory + "/file").c_str(), "w"));
    EXPECT_THAT(m_host.directory(m_directory + "/file").error().text, HasSubstr("Not a directory"));
    EXPECT_THAT(m_host.directory(m_directory + "/file/below").error().text,
                HasSubstr("Not a directory"));
}

TEST_F(HostTest, FindsProgramsInPath)
{
    const std::string before = std::getenv("PATH");
    ::setenv("PATH", ("/no/such:" + m_directory + ":/bin").c_str(), 1);
    EXPECT_EQ(m_host.program("sh"), "/bin/sh");
    EXPECT_EQ(m_host.program("no-such-program"), std::nullopt);
    EXPECT_EQ(m_host.program("/bin/ls"), "/bin/ls");
    EXPECT_EQ(m_host.program("/bin"), std::nullopt);
    std::fclose(std::fopen((m_directory + "/sh").c_str(), "w"));
    EXPECT_EQ(m_host.program("sh"), "/bin/sh"); // the first one is not executable
    fs::create_directory(m_directory + "/ls");
    EXPECT_EQ(m_host.program("ls"), "/bin/ls"); // a directory is not executable either
    ::setenv("PATH", before.c_str(), 1);
}

TEST_F(HostTest, LeavesAProgramRunningWithVariablesOfItsOwn)
{
    const std::string file = m_directory + "/done";
    ::setenv("GPUQ_TEST_KEPT", "kept", 1);
    ::setenv("GPUQ_TEST_CHANGED", "old", 1);
    ASSERT_TRUE(m_host.leave_running(
        {"sh", "-c", "echo $GPUQ_TEST_KEPT $GPUQ_TEST_CHANGED $PWD >$0.new; mv $0.new $0", file},
        {"GPUQ_TEST_CHANGED=new one"}, 30s));
    for (int i = 0; i < 2000 && ::access(file.c_str(), F_OK) != 0; ++i) {
        ::poll(nullptr, 0, 10);
    }
    std::ifstream text(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(text), {}), "kept new one /\n");
}

TEST_F(HostTest, WorkApartIsDoneSideBySideAndComesBackInOrder)
{
    // Each task waits for the other: run one after the other, they would never end.
    int there[2];
    int back[2];
    ASSERT_EQ(::pipe(there) + ::pipe(back), 0);
    char byte = 'x';
    const auto answers = m_host.apart({[&] {
                                           (void)!::write(there[1], &byte, 1);
                                           (void)!::read(back[0], &byte, 1);
                                           return std::string(200'000, 'a');
                                       },
                                       [&] {
                                           (void)!::read(there[0], &byte, 1);
                                           (void)!::write(back[1], &byte, 1);
                                           return std::string();
                                       }},
                                      20s);
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].kind, Kind::done);
    EXPECT_EQ(answers[0].text, std::string(200'000, 'a'));
    EXPECT_EQ(answers[1].kind, Kind::done);
    EXPECT_EQ(answers[1].text, "");
    for (const int fd : {there[0], there[1], back[0], back[1]}) {
        ::close(fd);
    }
}

TEST_F(HostTest, WorkApartAnswersWithAnyBytes)
{
    std::string all = "\x01\x01";
    for (int byte = 0; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    const auto answers = m_host.apart({[&] {
                                          (void)!::write(STDERR_FILENO, "chatter", 7);
                                          return all;
                                      }},
                                      20s);
    EXPECT_EQ(answers[0].text, all);
}

TEST_F(HostTest, WhatALatePieceOfWorkHasStartedEndsWithIt)
{
    // The write end of the pipe is open as long as the worker or its command lives.
    int held[2];
    ASSERT_EQ(::pipe2(held, 0), 0);
    const auto answers = m_host.apart({[&]() -> std::string {
                                          (void)m_host.run({"sleep", "333"});
                                          return "";
                                      }},
                                      300ms);
    ::close(held[1]);
    EXPECT_EQ(answers[0].kind, Kind::late);
    pollfd wait{held[0], POLLIN, 0};
    EXPECT_EQ(::poll(&wait, 1, 5000), 1);
    ::close(held[0]);
}

TEST_F(HostTest, OneThatHangsOrDiesStopsNoOther)
{
    const auto answers = m_host.apart({[]() -> std::string {
                                           ::pause();
                                           return "";
                                       },
                                       []() -> std::string {
                                           (void)!::write(STDERR_FILENO, "last words", 10);
                                           ::_exit(2);
                                       },
                                       []() -> std::string {
                                           ::raise(SIGKILL);
                                           return "";
                                       },
                                       []() -> std::string { throw std::runtime_error("thrown"); },
                                       [] {
                                           (void)!::write(STDERR_FILENO, "chatter", 7);
                                           return std::string("fine");
                                       }},
                                      300ms);
    EXPECT_EQ(answers[0].kind, Kind::late);
    EXPECT_EQ(answers[1].kind, Kind::died);
    EXPECT_EQ(answers[1].text, "last words");
    EXPECT_EQ(answers[2].kind, Kind::died);
    EXPECT_EQ(answers[3].text, "thrown");
    EXPECT_EQ(answers[4].kind, Kind::done);
    EXPECT_EQ(answers[4].text, "fine");
}

} // namespace
} // namespace gpuq
