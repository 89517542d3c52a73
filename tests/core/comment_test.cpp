// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/comment.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(JobComment, EndsAtItsNotes)
{
    EXPECT_EQ(without_notes("gpuq:KEY:2 busy=1 idle=2 unknown=3"), "gpuq:KEY:2");
    EXPECT_EQ(without_notes("gpuq:KEY"), "gpuq:KEY");
    EXPECT_EQ(without_notes(""), "");
    EXPECT_EQ(without_notes(" x"), "");
}

} // namespace
} // namespace gpuq
