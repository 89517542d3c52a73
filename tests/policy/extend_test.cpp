// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/extend.h"

#include "policy/calendar.h"
#include "policy/check.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::policy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

const std::string k_text = "version: 1\n"
                           "helper: gpuq-ops\n"
                           "pools:\n"
                           "  a: {nodes: n1, gpus: 'k80:4'}\n"
                           "queues:\n"
                           "  short: {time: 2h, pools: a}\n"
                           "  long:\n"
                           "    time: 48h\n"
                           "    pools: a\n"
                           "    extend:\n"
                           "      by: 1h\n"
                           "      times: 2\n"
                           "      if: nobody_waits\n";

std::string refusal(const ExtendRequest& request)
{
    const auto reading = read_policy(k_text, "/etc/gpuq/policy.yaml");
    return refusal_of(reading->policy, request).value_or("");
}

TEST(Extend, WithinTheRule)
{
    EXPECT_EQ(refusal({"gpuq_long", "", 10h, 60min, ""}), "");
    EXPECT_EQ(refusal({"gpuq_long", "", 49h, 60min, ""}), "")
        << "the second hour beyond the queue's time";
}

TEST(Extend, EachConditionIsNamedWithItsLine)
{
    EXPECT_EQ(refusal({"gpuq_long", "", 10h, 61min, ""}),
              "queue long extends a job by at most 1 h at a time (policy.yaml:11)");
    EXPECT_EQ(refusal({"gpuq_long", "", 49h + 1min, 60min, ""}),
              "queue long extends a job to at most 2 days 2 h, by 2 h more than its time "
              "(policy.yaml:12)");
    EXPECT_EQ(refusal({"gpuq_long", "", 10h, 60min, "4712"}),
              "queue long extends a job only while no other user waits for its nodes "
              "(policy.yaml:13): job 4712 does");
    EXPECT_EQ(refusal({"gpuq_short", "", 1h, 60min, ""}),
              "queue short does not extend running jobs (policy.yaml:6)");
    EXPECT_THAT(refusal({"normal", "", 1h, 60min, ""}), HasSubstr("in no queue of the policy"));
    EXPECT_THAT(refusal({"", "", 1h, 60min, ""}), HasSubstr("in no queue of the policy"));
}

/// The refusal of a rule with this condition, in line 13.
std::string refusal_if(const std::string& condition, const std::string& waiting, bool saved)
{
    std::string text = k_text;
    text.replace(text.find("nobody_waits"), 12, condition);
    const auto reading = read_policy(text, "policy.yaml");
    ExtendRequest request{"gpuq_long", "", 10h, 60min, waiting};
    request.saved = saved;
    return refusal_of(reading->policy, request).value_or("");
}

TEST(Extend, OnlyAfterACheckpoint)
{
    EXPECT_EQ(refusal_if("save_known", "4712", true), "");
    EXPECT_EQ(refusal_if("save_known", "", false),
              "queue long extends a job only after its program has saved a checkpoint "
              "(policy.yaml:13): no checkpoint of this one is known");
    EXPECT_EQ(refusal_if("nobody_waits", "4712", true),
              "queue long extends a job only while no other user waits for its nodes "
              "(policy.yaml:13): job 4712 does");
}

TEST(Extend, OfTwoConditionsOneIsEnough)
{
    for (const char* const condition :
         {"nobody_waits | save_known", "save_known|nobody_waits", "\"nobody_waits |save_known\""}) {
        EXPECT_EQ(refusal_if(condition, "4712", true), "");
        EXPECT_EQ(refusal_if(condition, "", false), "");
        EXPECT_EQ(refusal_if(condition, "4712", false),
                  "queue long extends a job only while no other user waits for its nodes or after "
                  "its program has saved a checkpoint (policy.yaml:13): job 4712 does, and no "
                  "checkpoint of this one is known");
    }
}

TEST(Extend, TheWaitingJobsMatterOnlyWithoutAnotherReason)
{
    const auto depends = [](bool unless_others_wait, bool save_known, bool saved) {
        ExtendRule rule;
        rule.only_if = Rule<ExtendConditions>{{unless_others_wait, save_known}};
        return depends_on_waiting(rule, saved);
    };
    EXPECT_FALSE(depends_on_waiting({}, false));
    EXPECT_TRUE(depends(true, false, true));
    EXPECT_FALSE(depends(false, true, false));
    EXPECT_TRUE(depends(true, true, false));
    EXPECT_FALSE(depends(true, true, true));
}

TEST(Extend, AnInvalidConditionHasItsPosition)
{
    std::string text = k_text;
    text.replace(text.find("nobody_waits"), 12, "nobody_waits | saved");
    const auto reading = read_policy(text, "policy.yaml");
    ASSERT_TRUE(reading);
    ASSERT_EQ(reading->findings.size(), 1U);
    EXPECT_EQ(to_line(reading->findings.front(), "policy.yaml"),
              "policy.yaml:13:26: error: 'saved' is not nobody_waits or save_known");
}

TEST(Extend, NotBeyondTheGpuHoursAhead)
{
    std::string text = k_text;
    text.replace(text.find("    extend:"), 0,
                 "    limits: {user: {gpu_hours_ahead: 100}, all: {gpu_hours_ahead: 400}}\n");
    const auto reading = read_policy(text, "policy.yaml");
    const auto with = [&](const GpuTimeAhead& ahead) {
        return refusal_of(reading->policy, {"gpuq_long", "", 10h, 60min, "", ahead}).value_or("");
    };
    EXPECT_EQ(with({6000, 60000, 24000}), "") << "accounts have no limit";
    EXPECT_EQ(with({6001, 0, 6001}),
              "queue long gives a user 100 GPU-hours ahead (policy.yaml:10): "
              "with this extension they would be 101");
    EXPECT_EQ(with({60, 0, 24060}), "queue long gives all users together 400 GPU-hours ahead "
                                    "(policy.yaml:10): with this extension they would be 401");
    EXPECT_TRUE(limits_gpu_time_ahead(reading->policy, "gpuq_long"));
    EXPECT_FALSE(limits_gpu_time_ahead(reading->policy, "gpuq_short"));
    EXPECT_FALSE(limits_gpu_time_ahead(reading->policy, "normal"));
}

TEST(Extend, NotInAPoolThatCloses)
{
    std::string text = k_text;
    text.replace(text.find("gpus: 'k80:4'"), 13, "gpus: 'k80:4', when: {to: '20:00'}");
    const auto reading = read_policy(text, "policy.yaml");
    const auto refused = [&](std::chrono::minutes time) {
        const Policy then = policy_at(reading->policy, LocalMinutes(time));
        return refusal_of(then, {"gpuq_long", "long", 10h, 60min, ""}).value_or("");
    };
    EXPECT_EQ(refused(12h), "");
    EXPECT_EQ(refused(20h - 1min), "pool a closes: its jobs have their end (policy.yaml:4)")
        << "within the notice time";
    EXPECT_NE(refused(21h), "");
}

TEST(Extend, NeedsAHelper)
{
    std::string text = k_text;
    text.erase(text.find("helper"), std::string("helper: gpuq-ops\n").size());
    const auto reading = read_policy(text, "policy.yaml");
    ASSERT_TRUE(reading);
    const auto findings = check(reading->policy);
    ASSERT_FALSE(findings.empty());
    EXPECT_THAT(findings.front().text, StartsWith("queue long extends running jobs"));
}

} // namespace
} // namespace gpuq::policy
