// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/event_files.h"

#include "fakes/fake_files.h"
#include "telemetry/event_bytes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
namespace events = telemetry::events;

const Time k_begin = Time(1'700'000'000s + 500ms);
const sweeps::Metric k_loss{"loss"};

class EventFilesTest : public testing::Test {
protected:
    EventFilesTest()
    {
        std::array<char, 256> host{};
        ::gethostname(host.data(), host.size() - 1);
        m_host = host.data();
    }

    std::string name(pid_t pid, std::chrono::seconds after = 0s) const
    {
        return fmt::format("events.out.tfevents.{}.{}.{}.0", 1'700'000'000 + after.count(), m_host,
                           pid);
    }
    void write(const std::string& directory, const std::string& path, float value,
               const std::string& tag = "train/loss")
    {
        auto& file = m_files.directories[directory][path];
        file.bytes += events::simple(0, m_step++, tag, value);
        file.modified = k_begin + 5s;
    }
    EventFiles followed() { return {m_listing, {"/try", "KEY-1", m_pid, k_begin}}; }
    /// The next search is due each time.
    std::vector<double> values(EventFiles& files)
    {
        m_now += 1h;
        files.read(m_now);
        std::vector<double> values;
        if (const auto* const curve = files.curve(k_loss)) {
            for (const auto& point : curve->recent()) {
                values.push_back(point.value);
            }
        }
        return values;
    }

    fakes::FakeFiles m_files;
    EventListing m_listing{m_files, "/work", k_begin};
    EventListing::Moment m_now = EventLoop::Clock::now();
    std::string m_host;
    pid_t m_pid = ::getpid();
    std::int64_t m_step = 1;
};

TEST_F(EventFilesTest, HaveTheCurvesOfTheProcessInTheirNames)
{
    write("/work", "logs/" + name(m_pid + 1), 9); // of another try in the same directory
    write("/work", "logs/events.out.tfevents.1700000001.other." + std::to_string(m_pid), 9);
    write("/work", "old/" + name(m_pid, -60s), 9); // of another process with the same number
    write("/work", "events.out.tfevents.1700000001." + m_host, 9);
    EventFiles files = followed();
    EXPECT_THAT(values(files), IsEmpty());
    write("/work", "logs/" + name(m_pid), 0.5);
    EXPECT_THAT(values(files), ElementsAre(0.5));
    write("/work", "logs/" + name(m_pid), 0.25);
    EXPECT_THAT(values(files), ElementsAre(0.5, 0.25));
}

TEST_F(EventFilesTest, MayBeOfAnyProcessOfTheTry)
{
    const pid_t child = ::fork();
    if (child == 0) {
        ::execle("/bin/sleep", "sleep", "60", nullptr,
                 std::array<const char*, 2>{"GPUQ_RUN_ID=KEY-1", nullptr}.data());
        ::_exit(1);
    }
    write("/work", name(child), 0.5);
    EventFiles files = followed();
    for (int tries = 0; values(files).empty() && tries < 500; ++tries) {
        ::usleep(10'000); // until the child has become sleep
    }
    EXPECT_THAT(values(files), ElementsAre(0.5));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

TEST_F(EventFilesTest, InTheDirectoryOfTheTryAreAllItsOwn)
{
    write("/try", "events.out.tfevents.1700000001.container", 0.5);
    write("/try", "events.out.tfevents.1699999999.container", 9); // of an earlier attempt
    EventFiles files = followed();
    EXPECT_THAT(values(files), ElementsAre(0.5));
}

TEST_F(EventFilesTest, OfTwoDirectoriesAreTwoCurves)
{
    write("/work", "logs/a/" + name(m_pid), 0.5);
    write("/work", "logs/b/" + name(m_pid), 0.75);
    write("/work", "logs/b/" + name(m_pid), 2, "accuracy");
    EventFiles files = followed();
    EXPECT_THAT(values(files), ElementsAre(0.5));
    EXPECT_NE(files.curve({"accuracy"}), nullptr);
    EXPECT_EQ(files.curve({"bleu"}), nullptr);
}

TEST_F(EventFilesTest, AreFoundBySearchesThatTakeAHundredthOfTheTime)
{
    EXPECT_EQ(m_listing.refresh(m_now), 1);
    m_listing.note_search(m_now, m_now + 1s);
    EXPECT_EQ(m_listing.refresh(m_now + 99s), 1);
    EXPECT_EQ(m_listing.refresh(m_now + 100s), 2);
}

TEST_F(EventFilesTest, OfAllTriesAreFoundByTheSameSearch)
{
    write("/work", "a/" + name(m_pid), 0.5);
    write("/work", "b/" + name(m_pid + 1), 0.75);
    EventFiles one = followed();
    m_pid += 1;
    EventFiles other = followed();
    one.read(m_now);
    m_listing.note_search(m_now, m_now + 1s);
    other.read(m_now);
    EXPECT_EQ(one.curve(k_loss)->last()->value, 0.5);
    EXPECT_EQ(other.curve(k_loss)->last()->value, 0.75);
    EXPECT_EQ(m_listing.refresh(m_now), 1);
}

} // namespace
} // namespace gpuq::supervisor
