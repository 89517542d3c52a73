// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/json.h"

#include <gtest/gtest.h>

namespace gpuq::checkpoint {
namespace {

TEST(TrainerState, TellsTheStepOfTheTrainerAndNoOther)
{
    const auto state = parse_trainer_state(
        R"({"epoch": 1.5, "log_history": [{"global_step": 3}], "global_step": 1500})");
    ASSERT_TRUE(state);
    EXPECT_EQ(state->global_step, 1500U);
    EXPECT_EQ(parse_trainer_state("{}")->global_step, std::nullopt);
}

TEST(TrainerState, MayHoldWhatPythonWritesForNoNumber)
{
    const auto state = parse_trainer_state(
        R"({"log_history": [{"loss": NaN, "a": Infinity, "b": [-Infinity], "NaN \" NaN": 1}],)"
        R"( "global_step": 7})");
    ASSERT_TRUE(state);
    EXPECT_EQ(state->global_step, 7U);
}

TEST(TrainerState, ThatIsCutOffIsNone)
{
    const std::string text = R"({"a": "NaN\\", "global_step": 7})";
    for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_FALSE(parse_trainer_state(text.substr(0, size))) << size;
    }
    EXPECT_TRUE(parse_trainer_state(text));
}

TEST(Index, NamesTheFilesOfItsWeightMap)
{
    const auto files = files_of_index(
        R"({"metadata": {"total_size": "no file"}, "weight_map": {"a": "2", "b": "1", "c": "2"}})");
    EXPECT_EQ(files, (std::vector<std::string>{"1", "2"}));
    EXPECT_EQ(files_of_index("[]"), std::nullopt);
}

} // namespace
} // namespace gpuq::checkpoint
