// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/reserve.h"

#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::policy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

const std::string k_class_and_lab = "version: 1\n"
                                    "pools:\n"
                                    "  class: {nodes: 'c[1-4]', gpus: 'a10:2'}\n"
                                    "  lab: {nodes: l1, gpus: 'k80:4'}\n"
                                    "queues:\n"
                                    "  short: {time: 2h, pools: class}\n"
                                    "  long: {time: 48h, pools: [class, lab]}\n";

Policy policy_with(const std::string& reserve)
{
    return read_policy(k_class_and_lab + reserve, "/etc/gpuq/policy.yaml")->policy;
}

const std::string k_rule =
    "reserve: {users: ada, accounts: staff, ahead: 2d, longest: 4h, most: 6}\n";
const Time k_now = Time{} + 240000h;

ReserveRequest request(const std::string& user = "ada")
{
    return {user, {}, k_now + 1h, 2h, 4};
}

std::string refusal(const ReserveRequest& request, const std::vector<MadeReservation>& others = {})
{
    return refusal_of(policy_with(k_rule), request, others, k_now).value_or("");
}

TEST(Reserve, WhoMayIsNamedInThePolicy)
{
    EXPECT_EQ(refusal(request("ada")), "");
    EXPECT_EQ(refusal(request("ben")),
              "only users ada and accounts staff may reserve GPUs (policy.yaml:8)");
    ReserveRequest by_account = request("ben");
    by_account.accounts = {"default", "staff"};
    EXPECT_EQ(refusal(by_account), "");
    EXPECT_TRUE(depends_on_accounts(policy_with(k_rule), "ben"));
    EXPECT_FALSE(depends_on_accounts(policy_with(k_rule), "ada"));
    EXPECT_THAT(*refusal_of(policy_with(""), request(), {}, k_now),
                StartsWith("the policy in force has no rules for reservations"));
}

TEST(Reserve, LengthAndTimeAheadAreLimited)
{
    ReserveRequest longest = request();
    longest.duration = 4h;
    EXPECT_EQ(refusal(longest), "");
    longest.duration = 4h + 1min;
    EXPECT_EQ(refusal(longest), "a reservation lasts at most 4 h (policy.yaml:8)");
    ReserveRequest far = request();
    far.start = k_now + 48h;
    EXPECT_EQ(refusal(far), "");
    far.start += 1min;
    EXPECT_EQ(refusal(far), "a reservation begins at most 2 days ahead (policy.yaml:8)");
}

TEST(Reserve, AllReservationsTogetherHoldNoMoreThanTheLimitAtOneTime)
{
    const Time start = request().start;
    EXPECT_EQ(refusal(request(), {{start - 1h, start + 1h, 2}}), "");
    EXPECT_EQ(refusal(request(), {{start - 1h, start + 1h, 3}}),
              "at most 6 GPUs may be reserved at the same time (policy.yaml:8): this is 4 GPUs, "
              "and others have 3");
    // One ends when this one begins, one begins when it ends.
    EXPECT_EQ(refusal(request(), {{start - 1h, start, 6}, {start + 2h, start + 3h, 6}}), "");
    // They are not on at the same time.
    EXPECT_EQ(refusal(request(), {{start, start + 1h, 2}, {start + 1h, start + 2h, 2}}), "");
    EXPECT_THAT(refusal(request(), {{start, start + 2h, 1}, {start + 1h, start + 2h, 2}}),
                HasSubstr("others have 3"));
    ReserveRequest many = request();
    many.gpus = 7;
    EXPECT_THAT(refusal(many), HasSubstr("this is 7 GPUs"));
}

TEST(Reserve, PoolsAreThoseOfTheRuleThatHaveTheModel)
{
    const auto names = [](const Policy& policy, const std::string& model) {
        std::vector<std::string> list;
        for (const Pool* pool : reservable_pools(policy, model)) {
            list.push_back(pool->name + " by " + partition_of(policy, *pool));
        }
        return list;
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(names(policy_with(k_rule), ""), (Names{"class by short", "lab by long-lab"}));
    EXPECT_EQ(names(policy_with(k_rule), "k80"), Names{"lab by long-lab"});
    const Policy narrow = policy_with("reserve: {users: ada, pools: lab}\n");
    EXPECT_EQ(names(narrow, ""), Names{"lab by long-lab"});
    EXPECT_EQ(names(narrow, "a10"), Names{});
}

TEST(Reserve, BadRulesAreFoundInTheFile)
{
    const auto findings = [](const std::string& reserve) {
        const auto reading = read_policy(k_class_and_lab + reserve, "p.yaml");
        std::string lines;
        for (const Finding& finding : reading->findings) {
            lines += to_line(finding, "p.yaml") + "\n";
        }
        return lines;
    };
    EXPECT_EQ(findings(k_rule), "");
    EXPECT_THAT(findings("reserve: {most: 4}\n"),
                HasSubstr("p.yaml:8:10: error: reserve needs 'users' or 'accounts'"));
    EXPECT_THAT(findings("reserve: {users: ada, pools: clas}\n"),
                HasSubstr("p.yaml:8:30: error: there is no pool 'clas' (did you mean 'class'?)"));
    EXPECT_THAT(findings("reserve: {users: ada, longest: 4}\n"),
                HasSubstr("'4' is not a length of time"));
    EXPECT_THAT(findings("reserve: {users: ada, longer: 4h}\n"),
                HasSubstr("unknown name 'longer' (did you mean 'longest'?) in reserve"));
    EXPECT_THAT(findings("reserve: {users: ada, most: 0}\n"), HasSubstr("p.yaml:8:29: error"));
    EXPECT_THAT(findings("reserve: {users: -ada}\n"), HasSubstr("'-ada' is not a name"));
    EXPECT_THAT(findings("reserve: {accounts: Staff}\n"), HasSubstr("stores its name in lower"));
    EXPECT_THAT(findings("reserve: [ada]\n"), HasSubstr("reserve must be `name: value` lines"));
}

} // namespace
} // namespace gpuq::policy
