// SPDX-License-Identifier: GPL-2.0-or-later
#include "log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace gpuq::log {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using namespace std::chrono_literals;

std::string content(const std::string& path)
{
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

class Log : public testing::Test {
protected:
    Log()
    {
        std::string pattern = (std::filesystem::temp_directory_path() / "gpuq-log-XXXXXX").string();
        m_dir = ::mkdtemp(pattern.data());
        m_path = m_dir + "/supervisor.log";
    }
    ~Log() override
    {
        to_stderr(Levels::all(Level::off));
        std::filesystem::remove_all(m_dir);
    }

    std::string m_dir;
    std::string m_path;
};

TEST_F(Log, ARecordHasTimeLevelProcessAndPart)
{
    to_file(m_path, "keeper", Levels::all(Level::info));
    info(Part::tickets, "renewed {} until {}", "krbtgt", 7);
    flush(5s);
    EXPECT_THAT(content(m_path),
                MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9][0-9][0-9]Z info keeper\\[[0-9]+\\] tickets: "
                             "renewed krbtgt until 7\n"));
    struct stat facts {};
    ASSERT_EQ(::stat(m_path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777U, 0600U);
}

TEST_F(Log, RecordsBelowTheLevelOfTheirPartAreDroppedAndMakeNoFile)
{
    Levels levels = Levels::all(Level::warning);
    levels.of_part[static_cast<std::size_t>(Part::remote)] = Level::debug;
    to_file(m_path, "supervisor", levels);
    info(Part::slurm, "not this");
    flush(5s);
    EXPECT_FALSE(std::filesystem::exists(m_path));
    debug(Part::remote, "but this");
    flush(5s);
    EXPECT_THAT(content(m_path), AllOf(HasSubstr("but this"), Not(HasSubstr("not this"))));
}

TEST_F(Log, NothingFromOutsideForgesALineOrReachesTheTerminal)
{
    to_file(m_path, "supervisor", Levels::all(Level::debug));
    debug(Part::slurm, "job {}", "a\n2026 error slurm: forged \x1b[2J");
    flush(5s);
    const std::string text = content(m_path);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_THAT(text, AllOf(HasSubstr("a^J2026"), Not(HasSubstr("\x1b"))));
}

TEST_F(Log, SecretsAreRemoved)
{
    to_file(m_path, "supervisor", Levels::all(Level::debug));
    debug(Part::slurm, "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345 password=hunter22");
    flush(5s);
    EXPECT_THAT(content(m_path), AllOf(Not(HasSubstr("hf_abc")), Not(HasSubstr("hunter22")),
                                       HasSubstr("[removed]")));
}

TEST_F(Log, AFullFileBecomesTheOldOneAndNoRecordIsLost)
{
    constexpr std::size_t k_most = 4096;
    to_file(m_path, "supervisor", Levels::all(Level::debug), k_most);
    for (int i = 0; i < 100; ++i) {
        debug(Part::chain, "record {:03}", i);
        flush(5s);
    }
    EXPECT_LE(std::filesystem::file_size(m_path), k_most);
    EXPECT_LE(std::filesystem::file_size(m_path + ".1"), k_most);
    const std::string both = content(m_path + ".1") + content(m_path);
    for (int i = 0; i < 100; ++i) {
        EXPECT_THAT(both, HasSubstr(fmt::format("record {:03}\n", i)));
    }
}

TEST_F(Log, ProcessesShareAFileAcrossItsRotation)
{
    constexpr std::size_t k_most = 32768;
    constexpr int k_children = 4;
    constexpr int k_records = 200;
    to_file(m_path, "supervisor", Levels::all(Level::debug), k_most);
    debug(Part::chain, "before the fork");
    flush(5s);
    for (int child = 0; child < k_children; ++child) {
        if (::fork() == 0) {
            after_fork("child");
            for (int i = 0; i < k_records; ++i) {
                debug(Part::chain, "child {} record {:03}", child, i);
            }
            ::_exit(0);
        }
    }
    for (int child = 0; child < k_children; ++child) {
        ASSERT_GT(::wait(nullptr), 0);
    }
    std::istringstream both(content(m_path + ".1") + content(m_path));
    int lines = 0;
    for (std::string line; std::getline(both, line); ++lines) {
        EXPECT_THAT(line, AnyOf(MatchesRegex(".* debug child\\[[0-9]+\\] chain: child [0-3] record "
                                             "[0-9][0-9][0-9]"),
                                HasSubstr("before the fork")));
    }
    // 800 records of some 70 bytes: one rotation, no second one of the fresh file.
    EXPECT_EQ(lines, 1 + k_children * k_records);
}

TEST_F(Log, ALinkIsNotFollowed)
{
    std::ofstream(m_dir + "/other") << "theirs\n";
    std::filesystem::create_symlink(m_dir + "/other", m_path);
    to_file(m_path, "supervisor", Levels::all(Level::debug));
    debug(Part::chain, "ours");
    flush(5s);
    EXPECT_EQ(content(m_dir + "/other"), "theirs\n");
}

TEST_F(Log, ATimerRecordsHowLongItTookAndTheOutcome)
{
    to_file(m_path, "supervisor", Levels::all(Level::debug));
    {
        Timer timer(Part::slurm, "load jobs");
        timer.outcome("7 jobs");
    }
    flush(5s);
    EXPECT_THAT(content(m_path), HasSubstr(" ms, 7 jobs\n"));
}

TEST_F(Log, ThreadsMayWriteAtOnce)
{
    to_file(m_path, "supervisor", Levels::all(Level::debug));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (int i = 0; i < 100; ++i) {
                debug(Part::samples, "thread {} record {}", t, i);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    flush(5s);
    const std::string text = content(m_path);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 400);
}

} // namespace
} // namespace gpuq::log
