// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/deadline.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Time k_link_start{seconds{1'000'000}};

TEST(Deadline, WarnsFifteenFiveAndOneMinuteBefore)
{
    Deadline deadline(k_link_start, minutes{60}, std::nullopt);
    EXPECT_EQ(deadline.next_warning(), k_link_start + minutes{45});
    EXPECT_EQ(deadline.warning(k_link_start + minutes{44}), std::nullopt);
    EXPECT_EQ(deadline.warning(k_link_start + minutes{45}), "15 minutes left");
    EXPECT_EQ(deadline.warning(k_link_start + minutes{45}), std::nullopt);
    EXPECT_EQ(deadline.next_warning(), k_link_start + minutes{55});
    EXPECT_EQ(deadline.warning(k_link_start + minutes{55}), "5 minutes left");
    EXPECT_EQ(deadline.warning(k_link_start + minutes{59}), "1 minute left");
    EXPECT_EQ(deadline.next_warning(), std::nullopt);
}

TEST(Deadline, AShortLimitHasOnlyTheWarningsThatFitIntoIt)
{
    EXPECT_EQ(Deadline(k_link_start, minutes{15}, std::nullopt).next_warning(),
              k_link_start + minutes{10});
    EXPECT_EQ(Deadline(k_link_start, minutes{2}, std::nullopt).next_warning(),
              k_link_start + minutes{1});
    EXPECT_EQ(Deadline(k_link_start, minutes{1}, std::nullopt).next_warning(), std::nullopt);
}

TEST(Deadline, SlurmsWordWins)
{
    Deadline deadline(k_link_start, minutes{60}, k_link_start + minutes{50});
    EXPECT_EQ(deadline.at(), k_link_start + minutes{50});
    deadline.correct(k_link_start + minutes{120});
    EXPECT_EQ(deadline.next_warning(), k_link_start + minutes{105});
    deadline.correct(k_link_start + minutes{4});
    EXPECT_EQ(deadline.warning(k_link_start), "5 minutes left") << "not 15: that time has passed";
    EXPECT_EQ(deadline.next_warning(), k_link_start + minutes{3});
}

TEST(Deadline, WarnsAgainBeforeALaterEnd)
{
    Deadline deadline(k_link_start, minutes{60}, std::nullopt);
    EXPECT_EQ(deadline.warning(k_link_start + minutes{55}), "5 minutes left");
    deadline.correct(k_link_start + minutes{60} + seconds{2});
    EXPECT_EQ(deadline.next_warning(), k_link_start + minutes{59} + seconds{2});
    deadline.correct(k_link_start + minutes{120});
    EXPECT_EQ(deadline.next_warning(), k_link_start + minutes{105});
}

TEST(KillWait, IsReadFromTheConfiguration)
{
    EXPECT_EQ(kill_wait_in(""), seconds{30});
    EXPECT_EQ(kill_wait_in("A=b\nKillWait=5\n"), seconds{5});
    EXPECT_EQ(kill_wait_in("  killwait = 12 # so\r\n"), seconds{12});
    EXPECT_EQ(kill_wait_in("#KillWait=5\nKillWaitX=7\nKillWait=many"), seconds{30});
}

} // namespace
} // namespace gpuq::supervisor
