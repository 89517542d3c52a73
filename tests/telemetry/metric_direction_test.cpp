// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/metric_direction.h"

#include <gtest/gtest.h>

namespace gpuq::telemetry {
namespace {

TEST(BetterOf, JudgesByTheName)
{
    for (const char* tag : {"loss", "train/Loss", "val_loss", "word_error_rate", "Perplexity",
                            "eval/ppl", "rmse", "error_score", "reward_loss", "val_mape"}) {
        EXPECT_EQ(better_of(tag), Better::lower) << tag;
    }
    for (const char* tag : {"acc", "val_acc", "top5_acc", "acc1", "Accuracy", "eval/f1", "f1-score",
                            "AUC", "roc_auc", "BLEU", "mAP", "mAP50", "mAP@0.5", "mean_iou",
                            "episode_reward", "mean_return", "val/precision"}) {
        EXPECT_EQ(better_of(tag), Better::higher) << tag;
    }
    for (const char* tag : {"", "lr", "learning_rate", "epoch", "grad_norm", "accelerator",
                            "mapping", "steps", "returned", "\xff"}) {
        EXPECT_EQ(better_of(tag), Better::unknown) << tag;
    }
}

} // namespace
} // namespace gpuq::telemetry
