// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/options.h"

#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using Strings = std::vector<std::string>;

constexpr Option k_table[] = {
    {'t', "time", "TIME", "how long"},
    {'f', "follow", "", "go on"},
    {'Q', "quiet", "", "say nothing"},
    {0, "env", "NAME=VALUE", "set"},
    {0, "pty", "", "a terminal", Option::State::reserved},
};

Parsed parsed(const Strings& arguments, Order order = Order::mixed)
{
    return *parse_options(k_table, order, arguments);
}

std::string reason(const Strings& arguments)
{
    const auto result = parse_options(k_table, Order::mixed, arguments);
    return result ? "accepted" : result.error().text;
}

TEST(Options, AreReadInEverySpelling)
{
    for (const Strings& arguments : {Strings{"-t", "2h"}, Strings{"-t2h"}, Strings{"--time", "2h"},
                                     Strings{"--time=2h"}, Strings{"-t1h", "-t2h"}}) {
        EXPECT_EQ(parsed(arguments).options.value("time"), "2h");
    }
    EXPECT_EQ(parsed({"--env=A=1", "--env", "B=2=3"}).options.values("env"),
              (Strings{"A=1", "B=2=3"}));
    const Options letters = parsed({"-fQt2h"}).options;
    EXPECT_TRUE(letters.has("follow") && letters.has("quiet"));
    EXPECT_EQ(letters.value("time"), "2h");
    EXPECT_FALSE(parsed({}).options.has("follow"));
}

TEST(Options, MayStandBetweenOperands)
{
    const Parsed mixed = parsed({"a", "-f", "b", "--", "-x", "--"});
    EXPECT_TRUE(mixed.options.has("follow"));
    EXPECT_EQ(mixed.operands, (Strings{"a", "b", "-x", "--"}));
    EXPECT_EQ(mixed.before_dashes, 2U);
    EXPECT_EQ(parsed({"a", "--"}).before_dashes, 1U);
    EXPECT_EQ(parsed({"a", "b"}).before_dashes, std::nullopt);
}

TEST(Options, EndAtTheFirstWordThatIsNone)
{
    const Parsed run =
        parsed({"-t", "2h", "train.py", "--epochs", "3", "-t", "9"}, Order::options_first);
    EXPECT_EQ(run.options.value("time"), "2h");
    EXPECT_EQ(run.operands, (Strings{"train.py", "--epochs", "3", "-t", "9"}));
    EXPECT_EQ(parsed({"--", "-x"}, Order::options_first).operands, Strings{"-x"});
    EXPECT_EQ(parsed({"a", "--", "b"}, Order::options_first).operands, (Strings{"a", "--", "b"}));
    EXPECT_EQ(parsed({"-"}, Order::options_first).operands, Strings{"-"});
}

TEST(Options, SayWhatIsWrong)
{
    EXPECT_EQ(reason({"--tmie", "2h"}), "no option --tmie (did you mean '--time'?)");
    EXPECT_EQ(reason({"--xyzzy"}), "no option --xyzzy");
    EXPECT_EQ(reason({"-x"}), "no option -x");
    EXPECT_EQ(reason({"-fx"}), "no option -x");
    EXPECT_EQ(reason({"-t"}), "--time needs a value: --time TIME");
    EXPECT_EQ(reason({"--time"}), "--time needs a value: --time TIME");
    EXPECT_EQ(reason({"--time="}), "--time needs a value: --time TIME");
    EXPECT_EQ(reason({"--follow=yes"}), "--follow takes no value");
    EXPECT_EQ(reason({"--pty"}), "--pty is not in this version");
    EXPECT_EQ(reason({"--=x"}), "no option --");
}

} // namespace
} // namespace gpuq::cli
