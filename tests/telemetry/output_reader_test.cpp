// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/output_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;

OutputReader read(std::string_view output, const Pattern* own = nullptr)
{
    OutputReader reader(own);
    reader.feed(output);
    reader.end_line();
    return reader;
}

TEST(OutputReader, FollowsABarThatDrawsItselfAnew)
{
    constexpr std::string_view k_output =
        "\r  0%|          | 0/300 [00:00<?, ?it/s]"
        "\r 33%|###       | 100/300 [00:50<01:40,  2.00it/s]\n"
        "{'loss': 0.9, 'epoch': 1.0}\n"
        "\r  50%|#####     | 5/10 [00:01<00:01,  5.00it/s]\r" // a validation run in between
        "\r 66%|######    | 200/300 [01:40<00:50,  2.00it/s]\n"
        "{'loss': 0.7, 'epoch': 2.0}\n";
    const OutputReader whole = read(k_output);
    EXPECT_EQ(whole.first(), (Progress{"step", 0, 300}));
    EXPECT_EQ(whole.last(), (Progress{"step", 200, 300}));
    EXPECT_EQ(whole.bar(), (Bar{"", 200, 300, 100s, 2.0}));
    ASSERT_NE(whole.curves().find("loss"), nullptr);
    EXPECT_EQ(whole.curves().find("loss")->first(), (Point{100, {}, 0.9}));
    EXPECT_EQ(whole.curves().find("loss")->last(), (Point{200, {}, 0.7}));
    OutputReader byte_by_byte;
    for (const char byte : k_output) {
        byte_by_byte.feed({&byte, 1});
    }
    EXPECT_EQ(byte_by_byte.last(), whole.last());
    EXPECT_EQ(byte_by_byte.curves().find("loss")->points(), 2U);
}

TEST(OutputReader, CountsTheStepsOfKerasOverItsEpochs)
{
    const OutputReader keras = read("Epoch 1/3\n"
                                    "100/100 [=======] - 1s - loss: 0.9\n"
                                    "Epoch 2/3\n"
                                    "\b\b\b\r 50/100 [===>...] - ETA: 1s - loss: 0.5");
    EXPECT_EQ(keras.first(), (Progress{"epoch", 0, 3}));
    EXPECT_EQ(keras.last(), (Progress{"epoch", 1, 3})) << "the header of the second comes first";
    EXPECT_EQ(keras.bar()->done, 50U);
    EXPECT_EQ(keras.curves().find("loss")->first(), (Point{100, {}, 0.9}));
    EXPECT_EQ(keras.curves().find("loss")->last(), (Point{150, {}, 0.5}));
    EXPECT_EQ(keras.curves().find("loss")->restarts(), 0U);
    const OutputReader done = read("Epoch 3/3\n100/100 [=======] - 1s - loss: 0.4\n");
    EXPECT_EQ(done.last(), (Progress{"epoch", 3, 3}));
    EXPECT_EQ(done.curves().find("loss")->last(), (Point{300, {}, 0.4}));
    EXPECT_EQ(read("Epoch 3/3\n").last(), (Progress{"epoch", 3, 3})) << "no bar: who knows";
    EXPECT_EQ(read("Epoch 3/3 loss 0.2\n").last(), (Progress{"epoch", 3, 3}));
}

TEST(OutputReader, CountsTheStepsOfLightningOverItsEpochs)
{
    const OutputReader lightning =
        read("\rEpoch 0:  50%|#####     | 2/4 [00:01<00:01, 2.00it/s, loss=0.9]"
             "\rEpoch 0: 100%|##########| 4/4 [00:02<00:00, 2.00it/s, loss=0.8]"
             "\rValidation:  50%|#####     | 10/20 [00:09<00:09, 1.00it/s]"
             "\rEpoch 1:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.8]"
             "\rEpoch 1:  75%|#######   | 3/4 [00:01<00:00, 2.00it/s, loss=0.5]");
    const auto* const loss = lightning.curves().find("loss");
    ASSERT_NE(loss, nullptr);
    EXPECT_EQ(loss->first(), (Point{2, {}, 0.9}));
    EXPECT_EQ(loss->last(), (Point{7, {}, 0.5}));
    EXPECT_EQ(loss->points(), 3U) << "none for a bar that stands at its beginning";
    EXPECT_EQ(loss->restarts(), 0U);
}

/// In the format of PyTorch's tutorials.
TEST(OutputReader, CountsTheStepsOfAllEpochs)
{
    const OutputReader tutorial = read("Epoch [1/10], Step [100/600], Loss: 0.9\n"
                                       "Epoch [1/10], Step [600/600], Loss: 0.8\n"
                                       "Epoch [1/10], Step [50/100], val_loss: 0.9\n"
                                       "Epoch [1/10] is over\n"
                                       "Epoch [2/10], Step [100/600], Loss: 0.7\n");
    EXPECT_EQ(tutorial.first(), (Progress{"step", 100, 6000}));
    EXPECT_EQ(tutorial.last(), (Progress{"step", 700, 6000}));
    const auto* const loss = tutorial.curves().find("Loss");
    ASSERT_NE(loss, nullptr);
    EXPECT_EQ(loss->last(), (Point{700, {}, 0.7}));
    EXPECT_EQ(loss->restarts(), 0U);
    EXPECT_EQ(
        read("Epoch [1/10], Step [100/600], Loss: 0.3\nEpoch [1/10], Step [200/600]\n").began(),
        (Progress{"step", 0, 6000}));
    EXPECT_EQ(read("epoch 0/10 iter 100/600 loss 2\nepoch 1/10 iter 20/600 loss 1\n").last(),
              (Progress{"iteration", 620, 6000}));
    EXPECT_EQ(read("Epoch [10/10], Step [600/600]\n").last(), (Progress{"step", 6000, 6000}));
}

TEST(OutputReader, TakesStepsThatGoOnOverTheEpochsForWhatTheyAre)
{
    const OutputReader whole = read("Epoch [1/3], Step [100/300], Loss: 0.9\n"
                                    "Epoch [2/3], Step [101/300], Loss: 0.8\n"
                                    "Epoch [2/3], Step [200/300], Loss: 0.7\n");
    EXPECT_EQ(whole.last(), (Progress{"epoch", 2, 3}));
    EXPECT_EQ(whole.curves().find("Loss")->last(), (Point{200, {}, 0.7}));
    EXPECT_EQ(read("Epoch 2/3, step 400/300\n").last(), (Progress{"epoch", 2, 3}))
        << "no such step";
    EXPECT_EQ(read("Epoch 2/3, step 4\n").last(), (Progress{"epoch", 2, 3}));
    EXPECT_EQ(read("Epoch 1/18446744073709551615, step 1/18446744073709551615\n").last()->unit,
              "epoch");
    EXPECT_EQ(read("Epoch 1/0, step 1/0\n").last(), (Progress{"epoch", 1, 0}));
}

TEST(OutputReader, HearsOnAPersonsOwnPatternAlone)
{
    const auto pattern = Pattern::compile("=> (?P<step>[0-9]+) (?P<loss>[0-9.]+)");
    const OutputReader own = read("epoch 9/9 loss 7\n=> 5 0.5\n", &*pattern);
    EXPECT_EQ(own.last(), (Progress{"step", 5, {}}));
    EXPECT_EQ(own.curves().find("loss")->last(), (Point{5, {}, 0.5}));
}

TEST(OutputReader, TakesAnyLine)
{
    OutputReader reader;
    for (int i = 0; i < 100; ++i) {
        reader.feed(std::string(100'000, 'x'));
    }
    reader.feed("\nstep 4\n");
    EXPECT_EQ(reader.last(), (Progress{"step", 4, {}}));
    std::string bars;
    for (int i = 1; i < 50; ++i) {
        bars += fmt::format("{}: 10%|# | 1/{} [00:01<00:01, 1.0it/s]\r", i, i);
    }
    EXPECT_EQ(read(bars).last()->total, 49U);
}

} // namespace
} // namespace gpuq::telemetry
