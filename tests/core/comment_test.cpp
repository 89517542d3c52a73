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

TEST(JobComment, NamesTheLinkAndTheCommandThatSubmittedIt)
{
    EXPECT_EQ(link_in_comment("gpuq:KEY:2:sweep busy=1"), "gpuq:KEY:2");
    EXPECT_EQ(link_in_comment("gpuq:KEY:sweep"), "gpuq:KEY");
    EXPECT_EQ(link_in_comment("gpuq:KEY:2"), "gpuq:KEY:2");
    EXPECT_EQ(submitter_in("gpuq:KEY:2:sweep busy=1"), Submitter::sweep);
    EXPECT_EQ(submitter_in("gpuq:KEY:sweep"), Submitter::sweep);
    EXPECT_EQ(submitter_in("gpuq:KEY:2 busy:sweep"), Submitter::run);
    EXPECT_EQ(submitter_in("gpuq:KEY"), Submitter::run);
    EXPECT_EQ(submitter_in("my gpuq:KEY:sweep"), Submitter::other);
    EXPECT_EQ(submitter_in(""), Submitter::other);
}

} // namespace
} // namespace gpuq
