// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/retention.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t k_gib = 1ULL << 30U;

TEST(Retention, IsATimeASizeOrBoth)
{
    EXPECT_EQ(parse_retention("30d, 5G").value(), (Retention{720h, 5 * k_gib}));
    EXPECT_EQ(parse_retention("5G,30d").value(), (Retention{720h, 5 * k_gib}));
    EXPECT_EQ(parse_retention("30d").value(), (Retention{720h, std::nullopt}));
    EXPECT_EQ(parse_retention(" 500M ").value(), (Retention{std::nullopt, k_gib / 1024 * 500}));
    EXPECT_EQ(parse_retention("0s").value(), (Retention{0s, std::nullopt}));
}

TEST(Retention, RefusesWhatCouldMeanEither)
{
    for (const char* text :
         {"", "30", "30d,", ",", "30d,40d", "5G,6G", "5g", "x", "30d 5G", "-1d"}) {
        const auto retention = parse_retention(text);
        ASSERT_FALSE(retention) << text;
        EXPECT_EQ(retention.error().kind, Error::Kind::usage);
    }
}

TEST(Retention, IsSaidInWords)
{
    EXPECT_EQ(to_text(Retention{720h, 5 * k_gib}), "30 days, 5.0 GiB");
    EXPECT_EQ(to_text(Retention{90min, std::nullopt}), "1 h 30 min");
}

} // namespace
} // namespace gpuq
