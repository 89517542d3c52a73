// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/event_loop.h"

#include "io/descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class EventLoopTest : public testing::Test {
protected:
    /// A pipe with one byte in it.
    static Pipe full_pipe()
    {
        Pipe made = *make_pipe();
        EXPECT_TRUE(write_all(made.write.get(), "x"));
        return made;
    }
    /// Adds a watch that logs its name.
    EventLoop::Watch log_reads(int fd, std::string name)
    {
        return loop.watch([fd] { return EventLoop::to_read(fd); },
                          [this, name = std::move(name)] { log.push_back(name); });
    }

    EventLoop loop;
    std::vector<std::string> log;
};

TEST_F(EventLoopTest, CallsTheHandlersOfReadyDescriptorsInTheirOrder)
{
    const Pipe one = full_pipe(), two = full_pipe(), empty = *make_pipe();
    const auto second = log_reads(two.read.get(), "two");
    const auto first = log_reads(one.read.get(), "one");
    const auto never = log_reads(empty.read.get(), "empty");
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("two", "one"));
}

TEST_F(EventLoopTest, AsksForTheInterestBeforeEachWait)
{
    const Pipe pipe = full_pipe();
    bool wanted = false;
    loop.add([&] { return EventLoop::to_read(pipe.read.get(), wanted); },
             [&] { log.emplace_back("read"); });
    loop.run_once(0s);
    EXPECT_THAT(log, ElementsAre());
    wanted = true;
    loop.run_once(0s);
    EXPECT_THAT(log, ElementsAre("read"));
}

TEST_F(EventLoopTest, WaitsForRoomToWrite)
{
    const Pipe pipe = *make_pipe();
    loop.add([&] { return EventLoop::to_write(pipe.write.get()); },
             [&](short ready) { log.emplace_back((ready & POLLOUT) != 0 ? "room" : "none"); });
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("room"));
}

TEST_F(EventLoopTest, AWatchThatAnotherHandlerRemovesIsNotCalled)
{
    const Pipe one = full_pipe(), two = full_pipe();
    EventLoop::Watch second;
    loop.add([&] { return EventLoop::to_read(one.read.get()); }, [&] { second.reset(); });
    second = log_reads(two.read.get(), "two");
    loop.run_once();
    loop.run_once();
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, AHandlerMayRemoveItsOwnWatchAndItsCaptures)
{
    const Pipe pipe = full_pipe();
    std::optional<EventLoop::Watch> own;
    const std::string text(100, 'x'); // in the heap
    own = loop.watch([&] { return EventLoop::to_read(pipe.read.get()); },
                     [this, &own, text] {
                         own.reset();
                         log.push_back(text);
                     });
    loop.run_once();
    loop.run_once(0s);
    EXPECT_THAT(log, ElementsAre(text));
}

TEST_F(EventLoopTest, AWatchAddedByAHandlerIsPolledInTheNextRound)
{
    const Pipe one = full_pipe(), two = full_pipe();
    std::vector<EventLoop::Watch> added;
    loop.add([&] { return EventLoop::to_read(one.read.get(), added.size() < 100); },
             [&] {
                 while (added.size() < 100) { // enough to reallocate all lists
                     added.push_back(log_reads(two.read.get(), "two"));
                 }
             });
    loop.run_once();
    EXPECT_THAT(log, ElementsAre());
    loop.run_once();
    EXPECT_EQ(log.size(), 100);
}

TEST_F(EventLoopTest, AWatchWhoseDescriptorWasReplacedInTheRoundIsNotCalled)
{
    const Pipe one = full_pipe(), two = full_pipe(), empty = *make_pipe();
    int current = two.read.get();
    loop.add([&] { return EventLoop::to_read(one.read.get()); },
             [&] { current = empty.read.get(); });
    loop.add([&] { return EventLoop::to_read(current); }, [&] { log.emplace_back("current"); });
    loop.run_once();
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, AnEventThatIsNoLongerWantedIsNotReported)
{
    const Pipe one = full_pipe(), two = full_pipe();
    short events = POLLIN;
    loop.add([&] { return EventLoop::to_read(one.read.get()); }, [&] { events = 0; });
    loop.add(
        [&] {
            return EventLoop::Interest{two.read.get(), events};
        },
        [&] { log.emplace_back("two"); });
    loop.run_once();
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, ReportsAHangupAndAClosedDescriptor)
{
    Pipe pipe = full_pipe();
    std::vector<short> ready;
    loop.add([fd = pipe.read.get()] { return EventLoop::to_hang_up(fd); },
             [&](short events) { ready.push_back(events); });
    loop.run_once(0s); // readable, but that is not of interest
    pipe.write.reset();
    loop.run_once();
    pipe.read.reset();
    loop.run_once();
    EXPECT_THAT(ready, ElementsAre(POLLHUP, POLLNVAL));
}

TEST_F(EventLoopTest, TimersAreCalledInTheOrderOfTheirTimes)
{
    EventLoop::Timer later(loop, [&] { log.emplace_back("later"); });
    EventLoop::Timer sooner(loop, [&] { log.emplace_back("sooner"); });
    EventLoop::Timer same(loop, [&] { log.emplace_back("same"); });
    EventLoop::Timer not_yet(loop, [&] { log.emplace_back("not yet"); });
    const auto now = EventLoop::Clock::now();
    later.start_at(now - 1s);
    sooner.start_at(now - 2s);
    same.start_at(now - 1s);
    not_yet.start_at(now + 1h);
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("sooner", "later", "same"));
    EXPECT_FALSE(later.is_started());
    EXPECT_EQ(not_yet.due(), now + 1h);
}

TEST_F(EventLoopTest, WaitsForATimerWithoutAnyWatch)
{
    EventLoop::Timer timer(loop, [&] { log.emplace_back("timer"); });
    const auto begun = EventLoop::Clock::now();
    timer.start_in(20ms);
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("timer"));
    EXPECT_GE(EventLoop::Clock::now() - begun, 20ms);
}

TEST_F(EventLoopTest, ReturnsAtOnceIfThereIsNothingToWaitFor)
{
    loop.add([] { return EventLoop::to_read(-1); }, [&] { log.emplace_back("watch"); });
    EventLoop::Timer timer(loop, [&] { log.emplace_back("timer"); });
    timer.start_in(1ms);
    timer.stop();
    loop.run_once();
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, WaitsNoLongerThanWanted)
{
    const Pipe empty = *make_pipe();
    const auto watch = log_reads(empty.read.get(), "empty");
    EventLoop::Timer timer(loop, [&] { log.emplace_back("timer"); });
    timer.start_in(1h);
    loop.run_once(1ms);
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, ATimerMayStopAndDestroyOthersAndStartItself)
{
    EventLoop::Timer first(loop, [] {}), stopped(loop, [&] { log.emplace_back("stopped"); });
    std::optional<EventLoop::Timer> destroyed;
    std::optional<EventLoop::Timer> again;
    again.emplace(loop, [&] {
        log.emplace_back("again");
        stopped.stop();
        destroyed.reset();
        again->start_in(0s);
    });
    destroyed.emplace(loop, [&] { log.emplace_back("destroyed"); });
    const auto now = EventLoop::Clock::now();
    again->start_at(now - 2s);
    stopped.start_at(now - 1s);
    destroyed->start_at(now - 1s);
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("again"));
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("again", "again"));
}

TEST_F(EventLoopTest, ATimerThatIsPostponedByAHandlerIsNotCalled)
{
    const Pipe pipe = full_pipe();
    EventLoop::Timer silence(loop, [&] { log.emplace_back("silence"); });
    silence.start_in(-1s);
    loop.add([&] { return EventLoop::to_read(pipe.read.get()); }, [&] { silence.start_in(1h); });
    loop.run_once();
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, ATimerRepeatsUntilItIsStopped)
{
    std::optional<EventLoop::Timer> timer;
    timer.emplace(loop, [&] {
        log.emplace_back("tick");
        if (log.size() == 3) {
            timer->stop();
        }
    });
    timer->repeat(1ms);
    while (timer->is_started()) {
        loop.run_once();
    }
    EXPECT_THAT(log, ElementsAre("tick", "tick", "tick"));
}

TEST_F(EventLoopTest, MissedPeriodsAreSkipped)
{
    EventLoop::Timer timer(loop, [&] { log.emplace_back("tick"); });
    timer.repeat(10ms);
    ::usleep(55'000);
    const auto before = EventLoop::Clock::now();
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("tick"));
    EXPECT_GT(*timer.due(), before);
}

TEST_F(EventLoopTest, NeitherADescriptorThatIsAlwaysReadyNorATimerThatIsAlwaysDueStarvesOthers)
{
    const Pipe one = full_pipe(), two = full_pipe();
    const auto first = log_reads(one.read.get(), "one");
    const auto second = log_reads(two.read.get(), "two");
    EventLoop::Timer timer(loop, [&] {
        log.emplace_back("timer");
        timer.start_in(-1s);
    });
    EventLoop::Timer other(loop, [&] { log.emplace_back("other"); });
    timer.start_in(-2s);
    other.start_in(-1s);
    loop.run_once();
    loop.run_once();
    EXPECT_THAT(log, ElementsAre("one", "two", "timer", "other", "one", "two", "timer"));
}

TEST_F(EventLoopTest, ASignalEndsTheWaitAndTimersThatAreDueAreCalled)
{
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before);
    const Pipe empty = *make_pipe();
    const auto watch = log_reads(empty.read.get(), "empty");
    itimerval alarm{};
    alarm.it_value.tv_usec = 20'000;
    ::setitimer(ITIMER_REAL, &alarm, nullptr);
    loop.run_once();
    ::sigaction(SIGALRM, &before, nullptr);
    EXPECT_THAT(log, ElementsAre());
}

TEST_F(EventLoopTest, WorksWithMoreDescriptorsThanTheLimitAllows)
{
    const std::array pipes{full_pipe(), full_pipe(), *make_pipe()};
    std::vector<EventLoop::Watch> watches;
    for (const Pipe& each : pipes) {
        watches.push_back(log_reads(each.read.get(), std::to_string(watches.size())));
    }
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit lower = before;
    lower.rlim_cur = 2;
    ::setrlimit(RLIMIT_NOFILE, &lower);
    loop.run_once();
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_THAT(log, ElementsAre("0", "1"));
}

TEST_F(EventLoopTest, WatchesAndTimersMayOutliveTheLoop)
{
    const Pipe pipe = full_pipe();
    auto other = std::make_unique<EventLoop>();
    EventLoop::Timer timer(*other, [] {});
    EventLoop::Watch watch =
        other->watch([&] { return EventLoop::to_read(pipe.read.get()); }, [] {});
    other.reset();
    timer.start_in(1s);
    EXPECT_TRUE(timer.is_started());
}

} // namespace
} // namespace gpuq
