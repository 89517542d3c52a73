// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/check_command.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

TEST(CheckCommand, PutsThePathWhereItBelongs)
{
    using Strings = std::vector<std::string>;
    EXPECT_EQ(with_path({"check", "-f={}", "{}{}"}, "/a{}b"),
              (Strings{"check", "-f=/a{}b", "/a{}b/a{}b"}));
    EXPECT_EQ(with_path({"--init_from=resume"}, "/a b"), (Strings{"--init_from=resume"}));
    EXPECT_EQ(with_path({}, "/a"), Strings{});
}

TEST(CheckCommand, PassesOnlyWhatExitsWithNought)
{
    gpuq::Run run{RunKey::make(Time{}, {})};
    run.request.work_dir = "/";
    EXPECT_TRUE(passes_check({"test", "-d"}, "/usr", run));
    EXPECT_TRUE(passes_check({"test", "-d"}, "usr", run)) << "in the run's folder";
    EXPECT_FALSE(passes_check({"test", "-d"}, "/no; true", run)) << "no shell reads it";
    EXPECT_FALSE(passes_check({"/does/not/exist"}, "/usr", run));
    EXPECT_FALSE(passes_check({"sh", "-c", "kill -9 $$", "{}"}, "/usr", run));
    run.request.work_dir = "/does/not/exist";
    EXPECT_FALSE(passes_check({"true"}, "/usr", run));
}

TEST(CheckCommand, ThrowsItsOutputAway)
{
    gpuq::Run run{RunKey::make(Time{}, {})};
    run.request.work_dir = "/";
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_TRUE(passes_check({"sh", "-c", "echo out; echo err >&2", "{}"}, "/usr", run));
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

} // namespace
} // namespace gpuq::supervisor
