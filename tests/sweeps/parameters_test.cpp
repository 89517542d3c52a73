// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace gpuq::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Parameter parsed(std::string_view text)
{
    const auto parameter = parse_parameter(text);
    EXPECT_TRUE(parameter) << (parameter ? "" : parameter.error().text);
    return parameter ? *parameter : Parameter{};
}

std::string error_of(std::string_view text)
{
    const auto parameter = parse_parameter(text);
    return parameter ? "accepted" : parameter.error().text;
}

TEST(Parameters, AreListsOfValuesOrRanges)
{
    EXPECT_EQ(parsed("lr=1e-4,3e-4"), (Parameter{"lr", Parameter::Choices{"1e-4", "3e-4"}}));
    EXPECT_EQ(parsed("act=relu|gelu,tanh"),
              (Parameter{"act", Parameter::Choices{"relu", "gelu,tanh"}}));
    EXPECT_EQ(parsed("layers=2..8"), (Parameter{"layers", Parameter::Integers{2, 8}}));
    EXPECT_EQ(parsed("x=-3..3"), (Parameter{"x", Parameter::Integers{-3, 3}}));
    EXPECT_EQ(parsed("p=0.1..0.9"), (Parameter{"p", Parameter::Reals{0.1, 0.9, false}}));
    EXPECT_EQ(parsed("lr=log:1e-5..1e-2"), (Parameter{"lr", Parameter::Reals{1e-5, 1e-2, true}}));
    EXPECT_EQ(parsed("layers= 2 .. 8 "), (Parameter{"layers", Parameter::Integers{2, 8}}));
    EXPECT_EQ(parsed("x=-1..+1"), (Parameter{"x", Parameter::Integers{-1, 1}}));
    EXPECT_EQ(parsed("dir=..,.,a..b"), (Parameter{"dir", Parameter::Choices{"..", ".", "a..b"}}));
    EXPECT_EQ(parsed("data=../a,../b"), (Parameter{"data", Parameter::Choices{"../a", "../b"}}));
    EXPECT_EQ(parsed("flag=--a=1,--a=2"),
              (Parameter{"flag", Parameter::Choices{"--a=1", "--a=2"}}));
}

TEST(Parameters, AreRefusedWithTheReason)
{
    EXPECT_THAT(error_of("lr"), HasSubstr("'lr' is not NAME=VALUES"));
    EXPECT_THAT(error_of("=1"), HasSubstr("'' is not the name of a parameter"));
    EXPECT_THAT(error_of("a-b=1"), HasSubstr("'a-b' is not the name"));
    EXPECT_THAT(error_of("1a=1"), HasSubstr("'1a' is not the name"));
    EXPECT_THAT(error_of("lr="), HasSubstr("empty value"));
    EXPECT_THAT(error_of("lr=1,,2"), HasSubstr("empty value"));
    EXPECT_THAT(error_of("lr=1,2,1"), HasSubstr("'1' is there twice"));
    EXPECT_THAT(error_of("n=8..2"), HasSubstr("8..2 is empty"));
    EXPECT_THAT(error_of("p=0.5..0.5"), HasSubstr("is empty"));
    EXPECT_THAT(error_of("lr=log:0..1"), HasSubstr("must begin above 0"));
    EXPECT_THAT(error_of("lr=log:1,2"), HasSubstr("is not log:LOW..HIGH"));
    EXPECT_THAT(error_of("p=1.0..inf"), HasSubstr("not a range"));
    EXPECT_THAT(error_of("p=1e400..2e400"), HasSubstr("not a range"));
    EXPECT_THAT(error_of("p=-1e308..1e308"), HasSubstr("-1e308..1e308 is too wide"));
    EXPECT_THAT(error_of("n=1..3,7"), HasSubstr("'1..3' is a range, which stands alone"));
    EXPECT_THAT(error_of("n=2.."), HasSubstr("'2..' is not LOW..HIGH"));
    EXPECT_THAT(error_of("n=1,..2"), HasSubstr("'..2' is not LOW..HIGH"));
    EXPECT_THAT(error_of("n=1...3"), HasSubstr("'1...3' is not LOW..HIGH"));
    EXPECT_THAT(error_of("n=1..3..5"), HasSubstr("'1..3..5' is not LOW..HIGH"));
    EXPECT_THAT(error_of("n=1..3.."), HasSubstr("'1..3..' is not LOW..HIGH"));
}

TEST(Grid, HasAllCombinationsTheLastParameterFastest)
{
    const auto tries = grid({parsed("a=x,y"), parsed("n=1..3")});
    ASSERT_TRUE(tries);
    EXPECT_THAT(*tries, ElementsAre(Values{"x", "1"}, Values{"x", "2"}, Values{"x", "3"},
                                    Values{"y", "1"}, Values{"y", "2"}, Values{"y", "3"}));
}

TEST(Grid, RefusesRealNumbersAndTooManyCombinations)
{
    EXPECT_THAT(grid({parsed("p=0.1..0.9")}).error().text, HasSubstr("--random N"));
    EXPECT_THAT(grid({parsed("n=1..1000"), parsed("m=1..101")}).error().text,
                HasSubstr("more than 100000"));
    EXPECT_THAT(grid({parsed("n=-9223372036854775808..9223372036854775807"), parsed("m=1..2")})
                    .error()
                    .text,
                HasSubstr("more than 100000"));
}

TEST(Sample, IsTheSameForTheSameSeedAndWithinTheRanges)
{
    const std::vector<Parameter> parameters{parsed("lr=log:1e-5..1e-2"), parsed("n=2..8"),
                                            parsed("act=relu|gelu")};
    const auto tries = sample(parameters, 200, 7);
    EXPECT_EQ(tries, sample(parameters, 200, 7));
    EXPECT_NE(tries, sample(parameters, 200, 8));
    ASSERT_THAT(tries, SizeIs(200));
    // On every machine: recorded when this was written.
    EXPECT_EQ(tries.front(), (Values{"0.00183297", "6", "relu"}));
    int below_middle = 0;
    for (const Values& values : tries) {
        const double lr = std::atof(values[0].c_str());
        const int n = std::atoi(values[1].c_str());
        EXPECT_TRUE(lr >= 1e-5 && lr <= 1e-2 && n >= 2 && n <= 8) << values[0] << " " << values[1];
        below_middle += lr < 3.16e-4 ? 1 : 0; // the geometric mean
    }
    EXPECT_TRUE(below_middle > 70 && below_middle < 130) << below_middle;
}

TEST(Sample, HasNoTryTwice)
{
    const std::vector<Parameter> parameters{parsed("n=1..3"), parsed("a=x,y")};
    const auto tries = sample(parameters, 100, 1);
    EXPECT_THAT(tries, SizeIs(6));
    EXPECT_EQ((std::set<Values>(tries.begin(), tries.end()).size()), 6U);
}

} // namespace
} // namespace gpuq::sweeps
