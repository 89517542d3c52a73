// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/training_files.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpuq::telemetry {
namespace {

TEST(MetricsCsv, IsReadWithoutTheRowThatIsBeingWritten)
{
    Curves curves;
    EXPECT_TRUE(read_metrics_csv("epoch,lr,step,train_loss,\"val,loss\"\r\n"
                                 "0,,49,0.9,\r\n"
                                 "0,0.001,99,nan,\r\n"
                                 "0,,99,,0.8\r\n"
                                 "1,short\r\n"
                                 "1,,149,0.5,\r\n"
                                 "1,,199,0.",
                                 curves));
    EXPECT_EQ(curves.find("train_loss")->points(), 3U);
    EXPECT_EQ(curves.find("train_loss")->last(), (Point{149, {}, 0.5}));
    EXPECT_EQ(curves.find("val,loss")->last(), (Point{99, {}, 0.8}));
    EXPECT_EQ(curves.find("lr")->points(), 1U);
    EXPECT_EQ(curves.find("epoch"), nullptr);
    EXPECT_FALSE(read_metrics_csv("a,b\n1,2\n", curves));
    EXPECT_FALSE(read_metrics_csv("step", curves));
    std::string wide(1 << 20, ',');
    wide += ",step\n";
    EXPECT_FALSE(read_metrics_csv(wide, curves));
}

TEST(TrainerState, TellsTheWholeTraining)
{
    const auto state = read_trainer_state(R"({"best_metric": null, "epoch": 1.5, "global_step": 30,
      "is_local_process_zero": true, "log_history": [
        {"epoch": 0.5, "learning_rate": 4e-05, "loss": 1.5, "step": 10, "nested": {"loss": 3}},
        {"epoch": 1.0, "eval_loss": 1.25, "step": 20},
        {"epoch": 1.5, "loss": NaN, "step": 30}],
      "max_steps": 60, "trial_params": [{"loss": 9, "step": 1}]})");
    ASSERT_TRUE(state);
    EXPECT_EQ(state->global_step, 30U);
    EXPECT_EQ(state->max_steps, 60U);
    EXPECT_EQ(state->curves.by_tag().size(), 3U);
    EXPECT_EQ(state->curves.find("eval_loss")->last(), (Point{20, {}, 1.25}));
    ASSERT_NE(state->curves.find("loss"), nullptr);
    EXPECT_EQ(state->curves.find("loss")->not_finite_since()->step, 30);
    EXPECT_FALSE(read_trainer_state("{\"global_step\": 3"));
    EXPECT_FALSE(read_trainer_state("[1]"));
    EXPECT_FALSE(read_trainer_state("{\"a\":" + std::string(100'000, '[')));
}

} // namespace
} // namespace gpuq::telemetry
