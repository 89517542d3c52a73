// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/reconnect_policy.h"

#include <gtest/gtest.h>

#include <ostream>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;
using Do = ReconnectPolicy::Do;
using State = ReconnectPolicy::State;

constexpr Moment at(Span span)
{
    return Moment{} + 1000s + span;
}

ReconnectPolicy live_in_front()
{
    ReconnectPolicy line(k_pace_in_front, 1);
    EXPECT_EQ(line.step(at(0s)), Do::connect);
    line.connected(at(0s));
    return line;
}

TEST(ReconnectPolicy, ConnectsAtOnceAndGivesAPersonTimeForAPassword)
{
    ReconnectPolicy line({}, 1);
    EXPECT_EQ(line.step(at(0s)), Do::connect);
    EXPECT_EQ(line.step(at(3600s)), Do::nothing);
    EXPECT_EQ(line.next(), std::nullopt);
}

TEST(ReconnectPolicy, DoesNotRepeatAFirstAttemptThatFailed)
{
    ReconnectPolicy line({}, 1);
    EXPECT_EQ(line.step(at(0s)), Do::connect);
    line.lost(at(1s));
    EXPECT_EQ(line.state(), State::over);
    EXPECT_EQ(line.step(at(100s)), Do::nothing);
}

TEST(ReconnectPolicy, BeatsEverySecondAndIsDeadAfterThreeOfSilence)
{
    ReconnectPolicy line = live_in_front();
    EXPECT_EQ(line.step(at(999ms)), Do::nothing);
    EXPECT_EQ(line.step(at(1s)), Do::beat);
    EXPECT_EQ(line.step(at(1s)), Do::nothing);
    line.heard(at(1100ms));
    EXPECT_EQ(line.step(at(2s)), Do::beat);
    EXPECT_EQ(line.step(at(4099ms)), Do::beat);
    EXPECT_EQ(line.step(at(4100ms)), Do::drop);
}

TEST(ReconnectPolicy, ComesBackWithPausesThatGrowToFifteenSecondsAndNeverGivesUp)
{
    ReconnectPolicy line = live_in_front();
    line.lost(at(10s));
    EXPECT_EQ(line.state(), State::reconnecting);
    Moment time = at(10s);
    constexpr Span k_most[] = {0ms, 250ms, 500ms, 1s, 2s, 4s, 8s, 15s, 15s, 15s};
    for (int i = 0; i < 200; ++i) {
        const auto next = line.next();
        ASSERT_TRUE(next);
        EXPECT_GE(*next, time);
        EXPECT_LE(*next - time, k_most[std::min(i, 9)]) << i;
        time = *next;
        ASSERT_EQ(line.step(time), Do::connect) << i;
        EXPECT_EQ(line.attempts(), i + 1);
        time += 1s;
        line.lost(time);
    }
}

TEST(ReconnectPolicy, AnAttemptThatHangsIsDropped)
{
    ReconnectPolicy line = live_in_front();
    line.lost(at(10s));
    EXPECT_EQ(line.step(at(10s)), Do::connect);
    EXPECT_EQ(line.step(at(24s)), Do::nothing);
    EXPECT_EQ(line.step(at(25s)), Do::drop);
}

TEST(ReconnectPolicy, AKeyPressTriesAtOnce)
{
    ReconnectPolicy line = live_in_front();
    Moment time = at(0s);
    for (int i = 0; i < 20; ++i) {
        line.lost(time);
        time = std::max(time, *line.next());
        EXPECT_EQ(line.step(time), Do::connect);
    }
    line.lost(time);
    line.nudge(time);
    EXPECT_EQ(line.step(time), Do::connect);
    line.nudge(time);
    EXPECT_EQ(line.step(time), Do::nothing) << "one attempt at a time";
}

TEST(ReconnectPolicy, AHostThatNeedsItsUserIsTriedOnlyWhenSomethingSaysSo)
{
    ReconnectPolicy line = live_in_front();
    line.lost(at(10s));
    EXPECT_EQ(line.step(at(10s)), Do::connect);
    EXPECT_FALSE(line.asks());
    line.denied();
    EXPECT_EQ(line.state(), State::needs_user);
    line.nudge(at(11s));
    line.moved(at(12s));
    EXPECT_EQ(line.step(at(13s)), Do::nothing);
    EXPECT_EQ(line.step(at(3h)), Do::nothing);
    EXPECT_EQ(line.next(), std::nullopt);
    line.attempt(ReconnectPolicy::Asking::user);
    line.attempt(ReconnectPolicy::Asking::user);
    EXPECT_EQ(line.step(at(4h)), Do::connect);
    EXPECT_TRUE(line.asks());
    line.attempt(ReconnectPolicy::Asking::user);
    EXPECT_EQ(line.step(at(4h)), Do::nothing);
    line.question();
    EXPECT_EQ(line.step(at(5h)), Do::nothing) << "as long as the user likes";
    line.answered(at(5h));
    EXPECT_EQ(line.step(at(5h + 119s)), Do::nothing);
    EXPECT_EQ(line.step(at(5h + 120s)), Do::drop);
    line.denied();
    EXPECT_FALSE(line.asks());
    EXPECT_EQ(line.step(at(6h)), Do::nothing);
    line.attempt(ReconnectPolicy::Asking::nobody);
    EXPECT_EQ(line.step(at(6h)), Do::connect);
    EXPECT_FALSE(line.asks());
    EXPECT_EQ(line.step(at(6h + 15s)), Do::drop);
    line.connected(at(6h + 16s));
    EXPECT_EQ(line.state(), State::live);
}

TEST(ReconnectPolicy, AnAttemptOfTheUsersThatBreaksIsFollowedByOthers)
{
    ReconnectPolicy line = live_in_front();
    line.lost(at(10s));
    EXPECT_EQ(line.step(at(10s)), Do::connect);
    line.denied();
    line.attempt(ReconnectPolicy::Asking::user);
    EXPECT_EQ(line.step(at(20s)), Do::connect);
    line.lost(at(21s));
    EXPECT_EQ(line.state(), State::reconnecting);
    EXPECT_FALSE(line.asks());
    EXPECT_EQ(line.step(at(40s)), Do::connect);
    EXPECT_FALSE(line.asks());
}

TEST(ReconnectPolicy, AWakeUpAsksWhetherTheConnectionStillLives)
{
    ReconnectPolicy line({}, 1);
    (void)line.step(at(0s));
    line.connected(at(0s));
    line.nudge(at(2s));
    EXPECT_EQ(line.step(at(2s)), Do::beat);
    EXPECT_EQ(line.step(at(4999ms)), Do::nothing);
    EXPECT_EQ(line.step(at(5s)), Do::drop);

    ReconnectPolicy alive({}, 1);
    (void)alive.step(at(0s));
    alive.connected(at(0s));
    alive.nudge(at(2s));
    alive.heard(at(2100ms));
    EXPECT_EQ(alive.step(at(2100ms)), Do::beat);
    EXPECT_EQ(alive.step(at(6s)), Do::nothing);
}

TEST(ReconnectPolicy, AnotherNetworkMakesAnAttemptAnewThatHangs)
{
    ReconnectPolicy line = live_in_front();
    line.lost(at(10s));
    EXPECT_EQ(line.step(at(10s)), Do::connect);
    line.moved(at(12s));
    EXPECT_EQ(line.step(at(12s)), Do::nothing) << "it has hardly begun";
    line.moved(at(16s));
    EXPECT_EQ(line.step(at(16s)), Do::drop);
    line.lost(at(16s));
    EXPECT_EQ(line.step(at(16s)), Do::connect);
}

TEST(ReconnectPolicy, AMachineThatWakesUpAsksAndComesBackAtOnce)
{
    ReconnectPolicy line(
        {}, 1); // background pace: a silent connection is considered dead only after 15 s
    (void)line.step(at(0s));
    line.slept(3h, at(0s)); // before the session began
    line.connected(at(0s));
    EXPECT_EQ(line.step(at(1s)), Do::nothing);
    line.slept(3h + 5s, at(2s)); // the clocks differ slightly
    EXPECT_EQ(line.step(at(2s)), Do::nothing);
    line.slept(11h, at(3s));
    EXPECT_EQ(line.step(at(3s)), Do::beat);
    EXPECT_EQ(line.step(at(6s)), Do::drop);
    line.lost(at(6s));
    EXPECT_EQ(line.step(at(6s)), Do::connect);
    line.lost(at(7s));
    line.lost(at(8s));
    line.lost(at(9s));
    line.slept(19h, at(9s));
    EXPECT_EQ(line.step(at(9s)), Do::connect);
}

TEST(ReconnectPolicy, OnlyAConnectionThatHeldBeginsAnewWithThePauses)
{
    const auto first_pause = [](Span held) {
        ReconnectPolicy line(k_pace_in_front, 3);
        (void)line.step(at(0s));
        line.connected(at(0s));
        Moment time = at(0s);
        for (int i = 0; i < 10; ++i) {
            line.lost(time);
            time = std::max(time, *line.next());
            (void)line.step(time);
        }
        line.connected(time);
        line.lost(time + held);
        return *line.next() - (time + held);
    };
    EXPECT_GT(first_pause(29s), 0s);
    EXPECT_EQ(first_pause(30s), 0s);
}

TEST(ReconnectPolicy, TenSilentConnectionsInARowAreDeaf)
{
    ReconnectPolicy line = live_in_front();
    Moment time = at(0s);
    const auto falls_silent = [&](int times) {
        for (int i = 0; i < times; ++i) {
            time += k_pace_in_front.silence;
            ASSERT_EQ(line.step(time), Do::drop);
            line.lost(time);
            time = *line.next();
            ASSERT_EQ(line.step(time), Do::connect);
            line.connected(time);
        }
    };
    falls_silent(9);
    EXPECT_FALSE(line.is_deaf());
    line.confirmed();
    falls_silent(9);
    line.lost(time); // cut: the network
    EXPECT_FALSE(line.is_deaf());
    time = *line.next();
    ASSERT_EQ(line.step(time), Do::connect);
    line.connected(time);
    falls_silent(1);
    EXPECT_TRUE(line.is_deaf());
    EXPECT_FALSE(line.is_hopeless()) << "it has responded once";
}

TEST(ReconnectPolicy, AConnectionThatDropsAgainAndAgainButCarriesBytesIsTakenUpSoon)
{
    ReconnectPolicy line = live_in_front();
    Moment time = at(0s);
    for (int i = 0; i < 100; ++i) {
        line.useful();
        time += 1s;
        line.lost(time);
        EXPECT_LE(*line.next() - time, 250ms);
        time = *line.next();
        EXPECT_EQ(line.step(time), Do::connect);
        line.connected(time);
    }
}

} // namespace
} // namespace gpuq::remote
