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

CheckedCheckpoint checked(const std::string& path, checkpoint::Verdict verdict,
                          std::optional<bool> valid)
{
    CheckedCheckpoint checked;
    checked.found = {path, verdict, "half of it: is missing", Time{123456789us}, 1u << 20, 42, 7};
    checked.valid = valid;
    return checked;
}

TEST(Packed, SightsComeBack)
{
    CheckpointSet candidates{checked("/a:b", checkpoint::Verdict::whole, true),
                             checked("/c", checkpoint::Verdict::incomplete, false),
                             checked("/d", checkpoint::Verdict::unsettled, std::nullopt)};
    candidates.back().found.step.reset();
    EXPECT_EQ(parse_checkpoints(packed(candidates)), candidates);
    EXPECT_THAT(parse_checkpoints(""), IsEmpty());
}

TEST(Packed, ATurnComesBack)
{
    PredecessorCheck predecessor;
    predecessor.link_start =
        LinkStart{Restart::crash, "/ckpt/3", 3600s, 26s, "it failed", std::nullopt};
    predecessor.link_start->previous = Ending{119, Cause::node_failed, "its node", Time{5s}, true};
    const auto back = parse_predecessor_check(packed(predecessor));
    ASSERT_TRUE(back && back->link_start);
    EXPECT_EQ(back->link_start->restart, Restart::crash);
    EXPECT_EQ(back->link_start->checkpoint, "/ckpt/3");
    EXPECT_EQ(back->link_start->length, 3600s);
    EXPECT_EQ(back->link_start->lead, 26s);
    EXPECT_EQ(back->link_start->why, "it failed");
    ASSERT_TRUE(back->link_start->previous);
    EXPECT_EQ(back->link_start->previous->cause, Cause::node_failed);
    predecessor.link_start->previous.reset();
    EXPECT_FALSE(parse_predecessor_check(packed(predecessor))->link_start->previous);
}

TEST(Packed, LeavingAndWaitingComeBack)
{
    PredecessorCheck predecessor;
    predecessor.leave = true;
    EXPECT_TRUE(parse_predecessor_check(packed(predecessor))->leave);
    predecessor.leave = false;
    predecessor.wait = "nobody can say";
    EXPECT_EQ(parse_predecessor_check(packed(predecessor))->wait, "nobody can say");
    EXPECT_FALSE(parse_predecessor_check(packed(predecessor))->link_start);
    EXPECT_FALSE(parse_predecessor_check("")) << "a helper that died";
    EXPECT_FALSE(parse_predecessor_check("4:turn3:abc1:x"));
}

TEST(Packed, WhatWasSettledComesBack)
{
    LinkOutcome outcome;
    outcome.verdict.decision = Verdict::Decision::over;
    outcome.verdict.why = "why";
    outcome.verdict.ending = Ending{3, Cause::finished, "", Time{5s}};
    outcome.candidates = {checked("/a", checkpoint::Verdict::whole, true)};
    auto back = parse_link_outcome(packed(outcome));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->verdict, outcome.verdict);
    EXPECT_EQ(back->candidates, outcome.candidates);
    EXPECT_FALSE(back->next);

    outcome.verdict = Verdict{};
    outcome.verdict.decision = Verdict::Decision::next_link;
    outcome.next = JobId{7};
    back = parse_link_outcome(packed(outcome));
    EXPECT_EQ(back->verdict.decision, Verdict::Decision::next_link);
    EXPECT_EQ(back->next, JobId{7});

    outcome.verdict.decision = Verdict::Decision::wait;
    EXPECT_FALSE(parse_link_outcome(packed(outcome))) << "as from a helper that died";
}

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
