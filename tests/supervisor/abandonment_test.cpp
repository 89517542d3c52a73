// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/abandonment.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using Minutes = std::chrono::minutes;

constexpr Abandonment::Limits k_limits{10min, 30min};
const Abandonment::Clock::time_point k_start{1h};

/// Checks once a minute, as a supervisor does. Returns the minute in which the shell is ended.
class Watch {
public:
    Abandonment abandonment{k_start, k_limits};
    Abandonment::ShellActivity activity{k_start};
    std::string why;

    std::optional<int> ends_within(Minutes time, std::chrono::milliseconds cpu_each_minute = 0ms)
    {
        for (Minutes passed{0}; passed <= time; passed += 1min) {
            if (const auto reason = abandonment.check(activity)) {
                why = *reason;
                return static_cast<int>(passed.count());
            }
            activity.now += 1min;
            activity.cpu_time += cpu_each_minute;
        }
        return std::nullopt;
    }
};

TEST(Abandonment, NobodyCame)
{
    Watch watch;
    EXPECT_EQ(watch.ends_within(60min), 10);
    EXPECT_EQ(watch.why, "no client attached to the shell within 10 minutes");
}

TEST(Abandonment, NobodyCameThoughSomethingRan)
{
    Watch watch;
    EXPECT_EQ(watch.ends_within(60min, 30s), 10);
}

TEST(Abandonment, SomebodyIsThere)
{
    Watch watch;
    watch.activity.attached = watch.activity.was_attached = true;
    EXPECT_EQ(watch.ends_within(600min), std::nullopt);
}

TEST(Abandonment, AllHaveLeftAndNothingHappens)
{
    Watch watch;
    watch.activity.attached = watch.activity.was_attached = true;
    EXPECT_EQ(watch.ends_within(100min), std::nullopt);
    watch.activity.attached = false;
    EXPECT_EQ(watch.ends_within(100min, 500ms), 30);
    EXPECT_EQ(watch.why, "the shell was unattended and idle for 30 minutes");
}

TEST(Abandonment, AllHaveLeftAndItWorks)
{
    Watch watch;
    watch.activity.was_attached = true;
    EXPECT_EQ(watch.ends_within(600min, 5s), std::nullopt);
    EXPECT_EQ(watch.ends_within(100min), 30);
}

TEST(Abandonment, OutputIsASignOfLife)
{
    Watch watch;
    watch.activity.was_attached = true;
    watch.activity.last_output = k_start + 20min;
    EXPECT_EQ(watch.ends_within(100min), 50);
}

TEST(Abandonment, IsCheckedInTime)
{
    Abandonment abandonment(k_start, k_limits);
    EXPECT_TRUE(abandonment.is_due(k_start, false));
    abandonment.check({k_start});
    EXPECT_EQ(abandonment.next_check(), k_start + 1min);
    EXPECT_FALSE(abandonment.is_due(k_start + 59s, false));
    EXPECT_TRUE(abandonment.is_due(k_start + 59s, true));
    abandonment.check({k_start + 9min + 30s});
    EXPECT_EQ(abandonment.next_check(), k_start + 10min);
}

} // namespace
} // namespace gpuq::supervisor
