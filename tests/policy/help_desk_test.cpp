// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/help_desk.h"

#include "policy/finding.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string k_begin = "version: 1\n"
                            "helper: ops\n"
                            "pools:\n"
                            "  a: {nodes: n1, gpus: 2}\n"
                            "queues:\n";
const std::string k_plain = "  batch: {time: 2h, pools: a}\n";
const std::string k_extends = "  batch: {time: 2h, pools: a, extend: {by: 1h}}\n";

Reading reading_of(const std::string& text)
{
    return read_policy(text, "p.yaml").value();
}

TEST(HelpDesk, HasTheListedRightsOnly)
{
    const Reading both =
        reading_of(k_begin + k_extends + "help_desk: {users: [lea, tom], may: [stop, extend]}\n");
    EXPECT_THAT(both.findings, IsEmpty());
    EXPECT_TRUE(has_right(both.policy, "tom", DeskRight::extend));
    EXPECT_EQ(refusal_of(both.policy, "lea", DeskRight::stop), std::nullopt);
    EXPECT_EQ(refusal_of(both.policy, "ada", DeskRight::stop),
              "the help desk does not let ada stop the jobs of others (p.yaml:7)");
    const Reading one = reading_of(k_begin + k_plain + "help_desk: {users: lea, may: stop}\n");
    EXPECT_THAT(one.findings, IsEmpty());
    EXPECT_TRUE(has_right(one.policy, "lea", DeskRight::stop));
    EXPECT_FALSE(has_right(one.policy, "lea", DeskRight::extend));
}

TEST(HelpDesk, SeesOnlyWithTheRight)
{
    const Reading sees = reading_of(k_begin + k_plain + "help_desk: {users: lea, may: see}\n");
    EXPECT_THAT(sees.findings, IsEmpty());
    EXPECT_TRUE(has_right(sees.policy, "lea", DeskRight::see));
    EXPECT_FALSE(has_right(sees.policy, "lea", DeskRight::stop));
    const Reading stops = reading_of(k_begin + k_plain + "help_desk: {users: lea, may: stop}\n");
    EXPECT_EQ(refusal_of(stops.policy, "lea", DeskRight::see),
              "the help desk does not let lea see the jobs of others (p.yaml:7)");
}

TEST(HelpDesk, IsNobodyUnlessThePolicyNamesIt)
{
    const Reading none = reading_of(k_begin + k_plain);
    EXPECT_EQ(refusal_of(none.policy, "lea", DeskRight::stop),
              "the policy has no help desk that may stop the jobs of others");
}

TEST(HelpDesk, IsCheckedWithThePolicy)
{
    const auto first_of = [](const std::string& text) {
        const auto findings = reading_of(text).findings;
        return findings.empty() ? "" : findings.front().text;
    };
    std::string without_helper = k_begin + k_plain + "help_desk: {users: lea, may: stop}\n";
    without_helper.erase(without_helper.find("helper"), 12);
    EXPECT_THAT(first_of(without_helper), HasSubstr("name it (helper, gpuq-stop(1))"));
    EXPECT_THAT(first_of(k_begin + k_plain + "help_desk: {users: lea, may: extend}\n"),
                HasSubstr("no queue has a rule"));
    for (const char* wrong :
         {"{users: lea}", "{may: stop}", "{users: lea, may: all}", "{users: 'a b', may: stop}",
          "[lea]", "{users: lea, may: {stop: yes}}", "{users: lea, may: stop, see: all}"}) {
        EXPECT_TRUE(
            has_errors(reading_of(k_begin + k_plain + "help_desk: " + wrong + "\n").findings))
            << wrong;
    }
}

} // namespace
} // namespace gpuq::policy
