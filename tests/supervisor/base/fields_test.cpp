// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/fields.h"

#include "supervisor/base/check_command.h"
#include "supervisor/chain/chain_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Fields, AreAnyBytes)
{
    const std::vector<std::string> fields{"", "a:b", std::string("\0\n", 2), "7:x", ""};
    EXPECT_EQ(fields_in(packed_fields(fields)), fields);
    EXPECT_THAT(fields_in(""), IsEmpty());
}

TEST(Fields, GiveWhatIsWholeOfATornText)
{
    const std::string packed = packed_fields({"one", "two"});
    EXPECT_THAT(fields_in(packed.substr(0, packed.size() - 1)), ElementsAre("one"));
    for (const char* torn : {"3", "3:", "3:on", ":x", "-1:x", "x", "99999999999999999999999:x"}) {
        EXPECT_THAT(fields_in(torn), IsEmpty()) << torn;
    }
}

Seen seen(const std::string& path, checkpoint::Verdict verdict, std::optional<bool> valid)
{
    Seen seen;
    seen.found = {path, verdict, "half of it: is missing", Time{123456789us}, 1u << 20, 42, 7};
    seen.valid = valid;
    return seen;
}

TEST(Packed, SightsComeBack)
{
    Sights sights{seen("/a:b", checkpoint::Verdict::whole, true),
                  seen("/c", checkpoint::Verdict::incomplete, false),
                  seen("/d", checkpoint::Verdict::unsettled, std::nullopt)};
    sights.back().found.step.reset();
    EXPECT_EQ(sights_in(packed(sights)), sights);
    EXPECT_THAT(sights_in(""), IsEmpty());
}

TEST(Packed, ATurnComesBack)
{
    Judged judged;
    judged.turn = Turn{Restart::crash, "/ckpt/3", 3600s, 26s, "it failed", std::nullopt};
    judged.turn->previous = Ending{119, Cause::node_failed, "its node", Time{5s}, true};
    const auto back = judged_in(packed(judged));
    ASSERT_TRUE(back && back->turn);
    EXPECT_EQ(back->turn->restart, Restart::crash);
    EXPECT_EQ(back->turn->checkpoint, "/ckpt/3");
    EXPECT_EQ(back->turn->length, 3600s);
    EXPECT_EQ(back->turn->lead, 26s);
    EXPECT_EQ(back->turn->why, "it failed");
    ASSERT_TRUE(back->turn->previous);
    EXPECT_EQ(back->turn->previous->cause, Cause::node_failed);
    judged.turn->previous.reset();
    EXPECT_FALSE(judged_in(packed(judged))->turn->previous);
}

TEST(Packed, LeavingAndWaitingComeBack)
{
    Judged judged;
    judged.leave = true;
    EXPECT_TRUE(judged_in(packed(judged))->leave);
    judged.leave = false;
    judged.wait = "nobody can say";
    EXPECT_EQ(judged_in(packed(judged))->wait, "nobody can say");
    EXPECT_FALSE(judged_in(packed(judged))->turn);
    EXPECT_FALSE(judged_in("")) << "a helper that died";
    EXPECT_FALSE(judged_in("4:turn3:abc1:x"));
}

TEST(Packed, WhatWasSettledComesBack)
{
    Settled settled;
    settled.verdict.go = Verdict::Go::over;
    settled.verdict.why = "why";
    settled.verdict.ending = Ending{3, Cause::finished, "", Time{5s}};
    settled.sights = {seen("/a", checkpoint::Verdict::whole, true)};
    auto back = settled_in(packed(settled));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->verdict, settled.verdict);
    EXPECT_EQ(back->sights, settled.sights);
    EXPECT_FALSE(back->next);

    settled.verdict = Verdict{};
    settled.verdict.go = Verdict::Go::on;
    settled.next = JobId{7};
    back = settled_in(packed(settled));
    EXPECT_EQ(back->verdict.go, Verdict::Go::on);
    EXPECT_EQ(back->next, JobId{7});

    settled.verdict.go = Verdict::Go::wait;
    EXPECT_FALSE(settled_in(packed(settled))) << "as from a helper that died";
}

TEST(CheckCommand, PutsThePathWhereItBelongs)
{
    using Words = std::vector<std::string>;
    EXPECT_EQ(with_path({"check", "-f={}", "{}{}"}, "/a{}b"),
              (Words{"check", "-f=/a{}b", "/a{}b/a{}b"}));
    EXPECT_EQ(with_path({"--init_from=resume"}, "/a b"), (Words{"--init_from=resume"}));
    EXPECT_EQ(with_path({}, "/a"), Words{});
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
