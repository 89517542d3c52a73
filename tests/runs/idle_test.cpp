// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/idle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const telemetry::IdleRule k_rule{30min, 5min, 10min, 4};

IdleFinding some_finding(IdleFinding::State state)
{
    IdleFinding finding;
    finding.state = state;
    finding.at = Time(std::chrono::hours(500'000));
    finding.partition = "calibration";
    finding.rule = k_rule;
    finding.left = 5min;
    finding.evidence = {2500s, 1000s, 12s, 1490, 8 << 20, 700, 4096, -1s, std::nullopt, 1000s};
    return finding;
}

TEST(IdleRecords, ComeBackFromTheDisk)
{
    const IdleRules rules{{"calibration", k_rule}, {"calibration-main", k_rule}};
    EXPECT_EQ(*idle_rules_from_json(to_json(rules)), rules);
    const Exemption exemption{"ada@login1", "a \"debugger\"", Time(std::chrono::hours(9))};
    EXPECT_EQ(*exemption_from_json(to_json(exemption)), exemption);
    for (const auto state :
         {IdleFinding::State::warned, IdleFinding::State::works, IdleFinding::State::released,
          IdleFinding::State::put_off, IdleFinding::State::exempt}) {
        EXPECT_EQ(*idle_finding_from_json(to_json(some_finding(state))), some_finding(state));
    }
}

TEST(IdleRecords, ARuleThatMakesNoSenseIsNone)
{
    const auto rules_in = [](const std::string& rule) {
        return *idle_rules_from_json(R"({"schema": 1, "partitions": {"a": )" + rule + "}}");
    };
    EXPECT_EQ(rules_in(R"({"after_ms": 60000, "warn_ms": 10000, "start_ms": 0, "max_per_hour": 1})")
                  .size(),
              1U);
    for (const char* rule :
         {"7", "{}", R"({"after_ms": 60000, "warn_ms": 60000, "start_ms": 0, "max_per_hour": 1})",
          R"({"after_ms": -1, "warn_ms": -2, "start_ms": 0, "max_per_hour": 1})",
          R"({"after_ms": "60000", "warn_ms": 10000, "start_ms": 0, "max_per_hour": 1})",
          R"({"after_ms": 18446744073709551615, "warn_ms": 1, "start_ms": 0, "max_per_hour": 1})",
          R"({"after_ms": 60000, "warn_ms": 10000, "start_ms": 0, "max_per_hour": 1e3})"}) {
        EXPECT_TRUE(rules_in(rule).empty()) << rule;
    }
}

TEST(IdleRecords, SurviveWhatIsNoRecord)
{
    for (const char* text : {"", "{", "[]", "7", "{\"schema\": 2}", "{\"schema\": 1}",
                             "{\"schema\": 1, \"state\": 5, \"evidence\": []}"}) {
        EXPECT_FALSE(idle_rules_from_json(text)) << text;
        EXPECT_FALSE(exemption_from_json(text)) << text;
        EXPECT_FALSE(idle_finding_from_json(text)) << text;
    }
    const std::string whole = to_json(some_finding(IdleFinding::State::released));
    for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
        EXPECT_FALSE(idle_finding_from_json(whole.substr(0, size)));
    }
}

TEST(IdleRecords, TellPeople)
{
    EXPECT_EQ(released_detail(30min), "released: its GPUs were unused for 30 min");
    EXPECT_EQ(idle_warning(some_finding(IdleFinding::State::warned), "4711"),
              "idle for 25 min: its GPUs are released in 5 min unless it works; "
              "gpuq exempt 4711 --reason TEXT keeps them");
    EXPECT_THAT(describe(some_finding(IdleFinding::State::released), std::nullopt),
                HasSubstr("released by the rule of queue calibration: its GPUs were unused for 25 "
                          "min (1490 samples, 12 s of 30 min without one, 0.7 s of CPU)"));
}

TEST(IdleRecords, CountDownWhileARunIsWarned)
{
    const IdleFinding finding = some_finding(IdleFinding::State::warned);
    const auto after = [&](std::chrono::seconds time) {
        return describe(finding, finding.at + time);
    };
    EXPECT_EQ(after(0s), "its GPUs were unused for 25 min; released in 5 min unless it works");
    EXPECT_EQ(after(200s), "its GPUs were unused for 28 min; released in 100 s unless it works");
    EXPECT_EQ(after(290s), "its GPUs were unused for 30 min; released in 10 s unless it works");
    EXPECT_EQ(after(301s), "its GPUs were unused for 30 min; released now unless it works");
    EXPECT_EQ(after(-60s), after(0s)) << "another machine's clock";
    EXPECT_EQ(describe(finding, std::nullopt), "its GPUs were unused for 25 min when it was warned")
        << "it has ended otherwise";
}

} // namespace
} // namespace gpuq
