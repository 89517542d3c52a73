// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Line, HasABarOfTqdm)
{
    const ParsedLine parsed =
        parse_line(" 45%|####5     | 45/100 [00:10<00:12,  4.40it/s, loss=0.213, lr=1e-05]");
    EXPECT_EQ(parsed.bar, (Bar{"", 45, 100, 10s, 4.4}));
    EXPECT_THAT(parsed.values, ElementsAre(Pair("loss", 0.213), Pair("lr", 1e-05)));
    EXPECT_EQ(parse_line("train:   7%|\u258b  | 7/99 [1:02:03<2:00, 2.50s/it]").bar,
              (Bar{"train", 7, 99, 3723s, 0.4}));
    EXPECT_EQ(parse_line("  0%|          | 0/10 [00:00<?, ?it/s]").bar, (Bar{"", 0, 10, 0s, {}}));
    const ParsedLine lightning =
        parse_line("Epoch 3:  45%|####  | 45/100 [00:10<00:12, 4.4it/s, v_num=2]");
    EXPECT_EQ(lightning.bar->title, "Epoch 3");
    EXPECT_THAT(lightning.counters, ElementsAre(Progress{"epoch", 3, {}}));
    const ParsedLine epochs = parse_line("Epochs:  30%|###  | 3/10 [00:10<00:12, 2.1s/it]");
    EXPECT_THAT(epochs.counters, ElementsAre(Progress{"epoch", 3, 10}));
    EXPECT_FALSE(epochs.bar);
}

TEST(Line, TakesNoBarForATrainingThatCountsOtherThings)
{
    EXPECT_FALSE(parse_line("model.bin: 45%|##  | 450M/1.00G [00:10<00:12, 44.0MB/s]").bar);
    EXPECT_FALSE(parse_line("Map: 45%|##  | 450/1000 [00:10<00:12, 44.0 examples/s]").bar);
    EXPECT_FALSE(parse_line("  45%|##  | 450/100 [00:10<00:12, 44.0it/s]").bar) << "more than all";
    EXPECT_FALSE(parse_line("%| | 1/2 [").bar);
    EXPECT_FALSE(parse_line("3/4 of it").bar);
}

TEST(Line, HasABarOfKeras)
{
    const ParsedLine old =
        parse_line("120/469 [======>.......] - ETA: 3s - loss: 0.3012 - accuracy: 0.91");
    EXPECT_EQ(old.bar, (Bar{"", 120, 469, {}, {}}));
    EXPECT_THAT(old.values, ElementsAre(Pair("loss", 0.3012), Pair("accuracy", 0.91)));
    const ParsedLine keras3 =
        parse_line("120/469 \u2501\u2501\u2501\u2501 2s 8ms/step - loss: 0.25");
    EXPECT_EQ(keras3.bar, (Bar{"", 120, 469, {}, {}}));
    EXPECT_THAT(keras3.values, ElementsAre(Pair("loss", 0.25)));
}

TEST(Line, HasTheDictOfHuggingFace)
{
    EXPECT_THAT(parse_line("{'loss': 1.07, 'learning_rate': 5e-05, 'epoch': 0.5}").values,
                ElementsAre(Pair("loss", 1.07), Pair("learning_rate", 5e-05)));
    EXPECT_THAT(parse_line("{'loss': '1.07', 'epoch': '0.5'}").values,
                ElementsAre(Pair("loss", 1.07)));
}

TEST(Line, HasValuesOnlyBesideAPlaceOrALoss)
{
    EXPECT_THAT(parse_line("epoch 1/40 loss 0.1234 accuracy 0.945").values,
                ElementsAre(Pair("loss", 0.1234), Pair("accuracy", 0.945)));
    EXPECT_THAT(parse_line("epoch 1/40 val_acc 0.75 test/accuracy 0.5 race 0.25").values,
                ElementsAre(Pair("val_acc", 0.75), Pair("test/accuracy", 0.5)));
    EXPECT_THAT(parse_line("step=3 reward=-1.5 fps: 20").values,
                ElementsAre(Pair("reward", -1.5), Pair("fps", 20.0)));
    EXPECT_THAT(parse_line("listening on port: 8080 pid=4").values, IsEmpty());
    EXPECT_THAT(parse_line("12:30:11 INFO train/loss: 2 at=12:30").values,
                ElementsAre(Pair("train/loss", 2.0)));
    EXPECT_THAT(parse_line("\x1b[32mloss\x1b[0m: \x1b[1m0.5\x1b[0m").values,
                ElementsAre(Pair("loss", 0.5)));
    const ParsedLine nan = parse_line("loss: nan, val_loss: inf info: x loss=nano");
    ASSERT_EQ(nan.values.size(), 2U);
    EXPECT_TRUE(std::isnan(nan.values[0].second));
    EXPECT_TRUE(std::isinf(nan.values[1].second));
    EXPECT_EQ(parse_line(""), ParsedLine{});
    EXPECT_EQ(parse_line("\x1b["), ParsedLine{});
}

} // namespace
} // namespace gpuq::telemetry
