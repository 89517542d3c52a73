// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/key.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

const Time k_moment{std::chrono::sys_days{std::chrono::year{2026} / 11 / 20} + 13h + 11min + 58s +
                    42ms};
constexpr std::string_view k_text = "20261120T131158.042Z-0f3a9c1e5b7d2468";

TEST(RunKey, IsMadeOfTimeAndRandomness)
{
    const RunKey key = RunKey::make(k_moment, {0x0f, 0x3a, 0x9c, 0x1e, 0x5b, 0x7d, 0x24, 0x68});
    EXPECT_EQ(key.text(), k_text);
    EXPECT_EQ(key.made_at(), k_moment);
    EXPECT_EQ(*RunKey::parse(k_text), key);
}

TEST(RunKey, SortsByTime)
{
    EXPECT_LT(RunKey::make(k_moment, {0xff}), RunKey::make(k_moment + 1ms, {0x00}));
    EXPECT_LT(RunKey::make(k_moment, {0x00}), RunKey::make(k_moment, {0x01}));
    // The text of an earlier key compares less too: sorted directory listings are chronological.
    EXPECT_LT(RunKey::make(k_moment, {}).text(), RunKey::make(k_moment + 9h, {}).text());
}

TEST(RunKey, IsAlwaysASafeFileName)
{
    for (const char* text :
         {"", "..", "../../etc/passwd", "20261120T131158.042Z-0f3a9c1e5b7d246", // too short
          "20261120T131158.042Z-0f3a9c1e5b7d2468a", "20261120T131158.042Z-0F3A9C1E5B7D2468",
          "20261120T131158.042Z-0f3a9c1e5b7d246/", "20261320T131158.042Z-0f3a9c1e5b7d2468",
          "20260230T131158.042Z-0f3a9c1e5b7d2468", "20261120 131158.042Z-0f3a9c1e5b7d2468",
          "20261120T131158.042Z-0f3a9c1e5b7d2468\n"}) {
        EXPECT_FALSE(RunKey::parse(text)) << text;
    }
}

TEST(JobComment, CarriesTheKey)
{
    const RunKey key = *RunKey::parse(k_text);
    EXPECT_EQ(job_comment(key), "gpuq:20261120T131158.042Z-0f3a9c1e5b7d2468");
    EXPECT_EQ(*key_in_comment(job_comment(key)), key);
    EXPECT_EQ(*key_in_comment(job_comment(key) + " busy=1 idle=0 unknown=0"), key);
    EXPECT_EQ(*key_in_comment(job_comment(key, LinkNumber{2}) + " busy=1"), key);
    EXPECT_EQ(key_in_comment("somebody else's").error().kind, Error::Kind::missing);
    EXPECT_FALSE(key_in_comment("gpuq:../.."));
    EXPECT_FALSE(key_in_comment(""));
}

} // namespace
} // namespace gpuq
