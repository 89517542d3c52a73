// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string why_not(std::string_view text)
{
    const auto pattern = Pattern::compile(text);
    return pattern ? "" : pattern.error().text;
}

TEST(Pattern, SaysWhatIsWhatByNames)
{
    const auto pattern =
        Pattern::compile(R"(it (?P<step>\d+) / (?P<total>\d+): L=(?P<loss>\S+) (?P<note>\w+)?)");
    ASSERT_TRUE(pattern) << pattern.error().text;
    const auto parsed = pattern->match("12:00 it 30 / 400: L=0.25 x");
    ASSERT_TRUE(parsed);
    EXPECT_THAT(parsed->counters, ElementsAre(Progress{"step", 30, 400}));
    EXPECT_THAT(parsed->values, ElementsAre(Pair("loss", 0.25)));
    EXPECT_FALSE(pattern->match("it is late"));
    EXPECT_TRUE(pattern->match("it 30 / 400: L=\xff "));
    const auto epochs = Pattern::compile("E(?P<epoch>[0-9]+) of (?P<total>[0-9]+)");
    ASSERT_TRUE(epochs);
    EXPECT_THAT(epochs->match("E2 of 9")->counters, ElementsAre(Progress{"epoch", 2, 9}));
}

TEST(Pattern, ThatCanNotBeIsRefused)
{
    EXPECT_THAT(why_not("(?P<step>"), HasSubstr("is not a valid RE2 regular expression"));
    EXPECT_THAT(why_not("step ([0-9]+)"), HasSubstr("has no named group"));
    EXPECT_THAT(why_not("(?P<total>[0-9]+)"), HasSubstr("has no named group"));
    EXPECT_THAT(why_not(""), HasSubstr("1 to 1000"));
    EXPECT_NE(why_not("(?P<step>(a{1000}){1000})"), "") << "too much memory";
    EXPECT_NE(why_not(R"((?P<step>a)\1)"), "") << "takes exponential time elsewhere";
}

TEST(Pattern, TakesLinearTime)
{
    const auto pattern = Pattern::compile("(?P<step>(x+x+)+)y");
    ASSERT_TRUE(pattern);
    EXPECT_FALSE(pattern->match(std::string(16 << 10, 'x')));
}

} // namespace
} // namespace gpuq::telemetry
