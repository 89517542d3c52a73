// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/program.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using Strings = std::vector<std::string>;

TEST(Environment, ALaterValueWinsAndADefaultDoesNot)
{
    Environment variables({"A=1", "AB=2", "B=", "noequals"});
    variables.set("A", "x=y");
    variables.set_default("B", "3");
    variables.set_default("C", "4");
    variables.unset("AB");
    EXPECT_EQ(variables.texts(), (Strings{"B=", "noequals", "A=x=y", "C=4"}));
}

TEST(SrunOfRanks, StartsTheProgramOnceOnEachNodeOrSoOftenAsIsAskedFor)
{
    Request request;
    request.nodes = 2;
    request.input = Input::terminal;
    const Strings arguments = srun_of_ranks({"--odd", "x"}, request, {"/s", "member"});
    EXPECT_EQ(arguments,
              (Strings{"srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1",
                       "--distribution=block", "--overlap", "--kill-on-bad-exit=1",
                       "--propagate=CORE,STACK", "--input=0", "--", "/s", "member", "--odd", "x"}));
    request.tasks_per_node = 4;
    request.input = Input::none;
    EXPECT_EQ(srun_of_ranks({"x"}, request, {})[2], "--ntasks=8");
    EXPECT_EQ(srun_of_ranks({"x"}, request, {})[3], "--ntasks-per-node=4");
    EXPECT_EQ(srun_of_ranks({"x"}, request, {})[8], "--input=none");
    request.input = Input::pipe;
    EXPECT_EQ(srun_of_ranks({"x"}, request, {})[8], "--");
}

} // namespace
} // namespace gpuq::supervisor
