// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/program.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using Words = std::vector<std::string>;

TEST(Environment, ALaterValueWinsAndADefaultDoesNot)
{
    Environment variables({"A=1", "AB=2", "B=", "noequals"});
    variables.set("A", "x=y");
    variables.set_default("B", "3");
    variables.set_default("C", "4");
    variables.unset("AB");
    EXPECT_EQ(variables.texts(), (Words{"B=", "noequals", "A=x=y", "C=4"}));
}

TEST(OnNodes, OneNodeNeedsNoSrun)
{
    EXPECT_EQ(on_nodes({"a", "b c"}, 1, Input::none, {"m"}), (Words{"a", "b c"}));
}

TEST(OnNodes, SeveralNodesRunItOnceEach)
{
    const Words words = on_nodes({"--odd", "x"}, 2, Input::terminal, {"/s", "member"});
    EXPECT_EQ(words,
              (Words{"srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--overlap",
                     "--kill-on-bad-exit=1", "--input=0", "--", "/s", "member", "--odd", "x"}));
    EXPECT_EQ(on_nodes({"x"}, 2, Input::none, {})[6], "--input=none");
    EXPECT_EQ(on_nodes({"x"}, 2, Input::pipe, {})[6], "--");
}

} // namespace
} // namespace gpuq::supervisor
