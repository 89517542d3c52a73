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
