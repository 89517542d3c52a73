// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::sweeps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const std::vector<std::string> k_names{"lr", "batch"};

std::vector<std::string> replaced(const std::vector<std::string>& command, const Values& values)
{
    return arguments_of_try(command, k_names, values);
}

TEST(ArgumentsOfTry, HaveTheValuesInPlaceOfTheNames)
{
    EXPECT_THAT(replaced({"train.py", "--lr={lr}", "{batch}", "{lr}x{batch}"}, {"1e-4", "32"}),
                ElementsAre("train.py", "--lr=1e-4", "32", "1e-4x32"));
}

TEST(ArgumentsOfTry, KeepOtherBraces)
{
    EXPECT_THAT(replaced({R"({"a": 1})", "{other}", "{", "}{", "{{lr}}", "{lr", "${lr}", "{{x}}"},
                         {"7", "8"}),
                ElementsAre(R"({"a": 1})", "{other}", "{", "}{", "{lr}", "{lr", "$7", "{x}"));
}

TEST(ArgumentsOfTry, DoNotReplaceWithinValues)
{
    EXPECT_THAT(replaced({"{lr}{batch}"}, {"{batch}", "{lr}"}), ElementsAre("{batch}{lr}"));
}

TEST(UnusedParameters, AreThoseInNoWord)
{
    EXPECT_THAT(unused_parameters({"train.py", "{lr}"}, k_names), ElementsAre("batch"));
    EXPECT_THAT(unused_parameters({"{batch}{lr}"}, k_names), IsEmpty());
    EXPECT_THAT(unused_parameters({"{{lr}}"}, {"lr"}), ElementsAre("lr"));
}

TEST(VariablesOfTry, AreItsNumberAndValues)
{
    EXPECT_THAT(variables_of_try(12, k_names, {"1", "2"}),
                ElementsAre(Pair("GPUQ_TRY", "12"), Pair("GPUQ_PARAM_lr", "1"),
                            Pair("GPUQ_PARAM_batch", "2")));
    EXPECT_EQ(values_text(k_names, {"1", "2"}), "lr=1 batch=2");
}

} // namespace
} // namespace gpuq::sweeps
