// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/ending_text.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

Run some_run()
{
    Run run{RunKey::make(Time{}, {}), "local", "ada", "login", "1", Time{}, Request{}, {}};
    run.request.name = "train";
    run.request.walltime = 120min;
    return run;
}

Ending ending(int status, Cause cause)
{
    return Ending{status, cause, "", Time{}};
}

using Lines = std::vector<std::string>;

TEST(ShortClockText, HasAtMostElevenColumns)
{
    const Time now{std::chrono::days{20'000}};
    const auto text = [&](Time at) { return short_clock_text(at, now); };
    EXPECT_EQ(text(now), clock_text(now, now));
    for (const Time at : {now + std::chrono::days{2}, now - std::chrono::days{181}}) {
        EXPECT_EQ(text(at), clock_text(at, now).substr(5)) << "without the year";
    }
    for (const Time at : {now + std::chrono::days{183}, now - std::chrono::days{2000}}) {
        EXPECT_EQ(text(at), clock_text(at, now).substr(0, 10)) << "without the time of day";
    }
}

TEST(EndingText, NameTheTwoLargestUnitsOfADuration)
{
    EXPECT_EQ(describe(0s), "0 s");
    EXPECT_EQ(describe(59s), "59 s");
    EXPECT_EQ(describe(90s), "1 min 30 s");
    EXPECT_EQ(describe(2h), "2 h");
    EXPECT_EQ(describe(2h + 1s), "2 h");
    EXPECT_EQ(describe(std::chrono::days{1} + 12h), "1 day 12 h");
    EXPECT_EQ(describe(std::chrono::days{7}), "7 days");
}

TEST(EndingText, SayNothingAfterSuccess)
{
    EXPECT_EQ(farewell(some_run(), JobId{42}, ending(0, Cause::finished), "tail"), Lines{});
}

TEST(EndingText, DoNotRepeatTheOutputOfAProgramThatLeftByItself)
{
    EXPECT_EQ(farewell(some_run(), JobId{42}, ending(3, Cause::finished), "tail"),
              (Lines{"run 42 (train) ended with status 3", "the whole log: gpuq logs 42"}));
}

TEST(EndingText, TellWhyARunDiedItsLastLinesAndWhatToDo)
{
    EXPECT_EQ(farewell(some_run(), JobId{42}, ending(124, Cause::time_limit), "epoch 1\nepoch 2\n"),
              (Lines{"run 42 (train) reached its time limit of 2 h", "  | epoch 1", "  | epoch 2",
                     "for more time: the same with -t 4h", "the whole log: gpuq logs 42"}));
}

TEST(EndingText, NameTheLimitThatARunHadInTheEnd)
{
    Ending limit = ending(124, Cause::time_limit);
    limit.detail = "1 min";
    EXPECT_EQ(farewell(some_run(), JobId{42}, limit, "").front(),
              "run 42 (train) reached its time limit of 1 min");
}

TEST(EndingText, NameTheSignalOfACrash)
{
    EXPECT_EQ(farewell(some_run(), JobId{42}, ending(128 + SIGSEGV, Cause::crashed), "").front(),
              "run 42 (train) was killed by signal 11 (SIGSEGV)");
}

TEST(EndingText, NameWhoStoppedIt)
{
    Ending stopped = ending(123, Cause::stopped);
    EXPECT_EQ(ending_text(stopped, {}), "was stopped");
    stopped.detail = "by ada@login1";
    EXPECT_EQ(ending_text(stopped, {}), "was stopped by ada@login1");
    stopped.detail = "withdrawn: Ctrl-C";
    EXPECT_EQ(ending_text(stopped, {}), "was stopped: withdrawn: Ctrl-C");
}

TEST(EndingText, HaveNoLogToShowForAProgramThatNeverStarted)
{
    Ending missing = ending(127, Cause::not_started);
    missing.detail = "no such program: trian.py";
    EXPECT_EQ(farewell(some_run(), JobId{42}, missing, ""),
              Lines{"run 42 (train) could not be started: no such program: trian.py"});
}

} // namespace
} // namespace gpuq
