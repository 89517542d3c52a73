// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/chain/chain_work.h"

#include "core/codec.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

CheckedCheckpoint checked(const std::string& path, checkpoint::Verdict verdict,
                          std::optional<bool> valid)
{
    CheckedCheckpoint checked;
    checked.found = {path, verdict, "half of it: is missing", Time{123456789us}, 1u << 20, 42, 7};
    checked.valid = valid;
    return checked;
}

CheckpointSet some_checkpoints()
{
    CheckpointSet candidates{checked("/a:b", checkpoint::Verdict::whole, true),
                             checked("/c", checkpoint::Verdict::incomplete, false),
                             checked("/d\n", checkpoint::Verdict::unsettled, std::nullopt)};
    candidates.back().found.step.reset();
    return candidates;
}

/// Comes back from its encoding, and a helper that died while writing it gave no answer.
template <typename T>
void expect_to_come_back(const T& value)
{
    const std::string answer = encoded(value);
    EXPECT_EQ(decoded<T>(answer), value);
    for (std::size_t size = 0; size < answer.size(); ++size) {
        EXPECT_FALSE(decoded<T>(answer.substr(0, size))) << size << " of " << answer.size();
    }
}

TEST(ChainAnswers, Checkpoints)
{
    expect_to_come_back(some_checkpoints());
    expect_to_come_back(CheckpointSet{}); // an empty directory is an answer
    std::string impossible = encoded(CheckpointSet{checked("", checkpoint::Verdict::whole, true)});
    impossible[8] = 3; // the verdict, after the number of elements and the length of the path
    EXPECT_FALSE(decoded<CheckpointSet>(impossible));
}

TEST(ChainAnswers, PastOfALink)
{
    LinkPast past;
    expect_to_come_back(past);
    past.link = LinkNumber{3};
    past.started_at = Time{1'795'180'318s};
    past.noticed_at = Time{std::chrono::microseconds(1'795'180'400'000'001)};
    past.ending = Ending{1, Cause::finished, "why", Time{5s}};
    past.host = "n1";
    past.checkpoint = "/a b/\n";
    past.preempted = true;
    expect_to_come_back(past);
    past.saved_after_notice = past.resumed = true;
    expect_to_come_back(past);
}

TEST(ChainAnswers, CheckOfThePredecessor)
{
    PredecessorCheck predecessor;
    predecessor.wait = "Slurm does not answer";
    expect_to_come_back(predecessor);
    predecessor.leave = true;
    expect_to_come_back(predecessor);
    predecessor.link_start =
        LinkStart{Restart::crash, "/ckpt/3", 3600s, 26s, "it failed", std::nullopt, "train.py"};
    expect_to_come_back(predecessor);
    predecessor.link_start->previous = Ending{119, Cause::node_failed, "its node", Time{5s}, true};
    expect_to_come_back(predecessor);
}

TEST(ChainAnswers, OutcomeOfALink)
{
    LinkOutcome outcome;
    outcome.verdict.decision = Verdict::Decision::over;
    outcome.verdict.why = "why";
    outcome.verdict.ending = Ending{3, Cause::finished, "", Time{5s}};
    outcome.candidates = some_checkpoints();
    expect_to_come_back(outcome);

    outcome.verdict = Verdict{};
    outcome.verdict.decision = Verdict::Decision::next_link;
    outcome.verdict.exclude = {"n1", "n2"};
    outcome.next = JobId{7};
    expect_to_come_back(outcome);

    outcome.verdict.decision = Verdict::Decision::wait;
    EXPECT_FALSE(decoded<LinkOutcome>(encoded(outcome))) << "as from a helper that died";
}

TEST(ChainAnswers, SubmissionOfTheNextLink)
{
    expect_to_come_back(NextSubmission{});
    expect_to_come_back(NextSubmission{JobId{42}, std::nullopt});
    expect_to_come_back(NextSubmission{std::nullopt, ""});
}

} // namespace
} // namespace gpuq::supervisor
