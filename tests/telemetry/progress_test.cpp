// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/progress.h"

#include "telemetry/output_reader.h"

#include <gtest/gtest.h>

namespace gpuq::telemetry {
namespace {

using Maybe = std::optional<Progress>;

OutputReader reading(std::string_view output)
{
    OutputReader reader;
    reader.feed(output);
    reader.end_line();
    return reader;
}

Maybe first_progress(std::string_view output)
{
    return reading(output).first();
}

Maybe last_progress(std::string_view output)
{
    return reading(output).last();
}

TEST(Progress, IsReadAsFrameworksWriteIt)
{
    EXPECT_EQ(last_progress("Epoch 3/10 loss 0.2\n"), (Progress{"epoch", 3, 10}));
    EXPECT_EQ(last_progress("epoch: 7, acc=0.91"), (Progress{"epoch", 7, {}}));
    EXPECT_EQ(last_progress("[Epoch=4] done"), (Progress{"epoch", 4, {}}));
    EXPECT_EQ(last_progress("global_step 120"), (Progress{"step", 120, {}}));
    EXPECT_EQ(last_progress("Steps 5 of 80\n"), (Progress{"step", 5, 80}));
    EXPECT_EQ(last_progress("iter 20 / 400: loss 1"), (Progress{"iteration", 20, 400}));
    EXPECT_EQ(last_progress("Epoch [2/90]"), (Progress{"epoch", 2, 90}));
}

TEST(Progress, IsTheFirstOrTheLastOfTheUnitThatCountsMost)
{
    constexpr std::string_view k_output = "step 1\nstep 2\nepoch 1 step 9\nepoch 2\nstep 30\n";
    EXPECT_EQ(first_progress(k_output), (Progress{"epoch", 1, {}}));
    EXPECT_EQ(last_progress(k_output), (Progress{"epoch", 2, {}}));
    EXPECT_EQ(first_progress("iter 3\nstep 4\nstep 5"), (Progress{"step", 4, {}}));
}

TEST(Progress, BeganOnePlaceBeforeTheFirstThatWasTold)
{
    const auto began = [](std::string_view output) { return reading(output).began(); };
    EXPECT_EQ(began("epoch 1/9 loss 2\nepoch 2/9 loss 1\nepoch 3/9\n"), (Progress{"epoch", 0, 9}));
    EXPECT_EQ(began("epoch 5/9 loss 2\nepoch 6/9 loss 1\n"), (Progress{"epoch", 4, 9}))
        << "resumed";
    EXPECT_EQ(began("step 100/900\nstep 100/900 lr 1\nstep 200/900\n"), (Progress{"step", 0, 900}));
    EXPECT_EQ(began("step 500\nstep 510\nstep 600\n"), (Progress{"step", 490, {}}));
    EXPECT_EQ(began("step 10/900\nstep 110/900\n"), (Progress{"step", 0, 900})) << "not less";
    EXPECT_EQ(began("epoch 4/9 loss 2\n"), (Progress{"epoch", 4, 9})) << "who knows";
    EXPECT_EQ(began("epoch 4/9 loss 2\nepoch 1/9 loss 2\n"), (Progress{"epoch", 4, 9}));
    EXPECT_EQ(began("Epoch 1/3\nloss 0.3\nEpoch 2/3\n"), (Progress{"epoch", 1, 3}))
        << "as it began";
    EXPECT_EQ(began("Epoch 2/3\n1/9 [=>..]\nEpoch 3/3\n"), (Progress{"epoch", 1, 3}));
    EXPECT_EQ(
        began("33%|# | 100/300 [00:50<01:40, 2.00it/s]\r34%|# | 102/300 [00:51<01:39, 2.00it/s]"),
        (Progress{"step", 100, 300}));
    EXPECT_EQ(began("hello"), Maybe());
}

TEST(Progress, IsNotWhatOnlyLooksLikeIt)
{
    EXPECT_EQ(last_progress(""), Maybe());
    EXPECT_EQ(last_progress("epoch"), Maybe());
    EXPECT_EQ(last_progress("footstep 3, stepping 4, iterator 5"), Maybe());
    EXPECT_EQ(last_progress("epoch loss 3"), Maybe());
    EXPECT_EQ(last_progress("max_iters = 100000, warmup_steps: 5"), Maybe());
    EXPECT_EQ(last_progress("step 0.5 of the way"), Maybe());
    EXPECT_EQ(last_progress("step -3"), Maybe());
    EXPECT_EQ(last_progress("step 99999999999999999999999"), Maybe());
    EXPECT_EQ(last_progress("Epoch 3/x"), (Progress{"epoch", 3, {}}));
}

TEST(TimeLeft, GoesOnAtTheSamePace)
{
    using std::chrono::seconds;
    const Progress first{"epoch", 10, 100};
    EXPECT_EQ(time_left(first, {"epoch", 20, 100}, seconds(50)), seconds(400));
    EXPECT_EQ(time_left(first, {"epoch", 100, 100}, seconds(50)), seconds(0));
    EXPECT_EQ(time_left(first, {"epoch", 20, {}}, seconds(50)), std::nullopt) << "no total";
    EXPECT_EQ(time_left(first, {"epoch", 10, 100}, seconds(50)), std::nullopt) << "no pace";
    EXPECT_EQ(time_left(first, {"step", 20, 100}, seconds(50)), std::nullopt);
    EXPECT_EQ(time_left(first, {"epoch", 20, 15}, seconds(50)), std::nullopt);
    EXPECT_EQ(time_left(first, {"epoch", 20, ~0ULL}, seconds(50)), std::nullopt) << "no forecast";
}

} // namespace
} // namespace gpuq::telemetry
