// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/names.h"

#include <gtest/gtest.h>

namespace gpuq::checkpoint {
namespace {

TEST(Matches, StarsAndQuestionMarks)
{
    EXPECT_TRUE(matches("epoch-*.npz", "epoch-0007.npz"));
    EXPECT_TRUE(matches("*", "anything"));
    EXPECT_TRUE(matches("a*b*c", "aXbXbXc"));
    EXPECT_TRUE(matches("a?c", "abc"));
    EXPECT_TRUE(matches("[1].pt", "[1].pt"));
    EXPECT_TRUE(matches("a*", "a"));
    EXPECT_FALSE(matches("a?", "a"));
    EXPECT_FALSE(matches("epoch-*.npz", "epoch-0007.npz.tmp"));
    EXPECT_FALSE(matches("", "a"));
}

TEST(Matches, HiddenNamesOnlyWhenAsked)
{
    EXPECT_FALSE(matches("*", ".hidden"));
    EXPECT_TRUE(matches(".h*", ".hidden"));
}

TEST(Matches, ManyStarsInNoTime)
{
    std::string stars;
    for (int count = 0; count < 200; ++count) {
        stars += "*a";
    }
    EXPECT_FALSE(matches(stars + "b", std::string(20'000, 'a')));
}

TEST(IsTemporary, WhatIsStillWrittenOrPutAside)
{
    for (const char* name : {"a.pt.tmp", "a.part", "tmp-checkpoint-5", "a.pt.incomplete",
                             "a.pt.incomplete-2", "a~", "5.orbax-checkpoint-tmp-17"}) {
        EXPECT_TRUE(is_temporary(name)) << name;
    }
    for (const char* name : {"a.pt", "tmp", "party", "attempt-1"}) {
        EXPECT_FALSE(is_temporary(name)) << name;
    }
}

TEST(StepOf, TheLastNumberOrTheOneThatIsCalledSo)
{
    EXPECT_EQ(step_of("epoch-0007.npz"), 7U);
    EXPECT_EQ(step_of("checkpoint-1500"), 1500U);
    EXPECT_EQ(step_of("model-3.h5"), 3U);
    EXPECT_EQ(step_of("ckpt.500"), 500U);
    EXPECT_EQ(step_of("epoch=3-step=1500-v1.ckpt"), 1500U);
    EXPECT_EQ(step_of("epoch=09-val_loss=0.32.ckpt"), 9U);
    EXPECT_EQ(step_of("weights.07-0.32.h5"), 7U);
    EXPECT_EQ(step_of("global_step500"), 500U);
    EXPECT_EQ(step_of("iter_0000100"), 100U);
    EXPECT_EQ(step_of("1000"), 1000U);
}

TEST(StepOf, TheFolderWhenTheNameHasNone)
{
    EXPECT_EQ(step_of("run/step-40/model.pt"), 40U);
    EXPECT_EQ(step_of("last.ckpt"), std::nullopt);
    EXPECT_EQ(step_of("99999999999999999999999.pt"), std::nullopt);
    EXPECT_EQ(step_of("loss-0.5.pt"), std::nullopt);
    EXPECT_EQ(step_of(""), std::nullopt);
}

} // namespace
} // namespace gpuq::checkpoint
