// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/calendar.h"

#include "core/timestamp.h"
#include "policy/cases.h"
#include "policy/check.h"
#include "policy/objects.h"
#include "policy/read.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpuq::policy {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string k_head = "version: 1\n"
                           "pools:\n"
                           "  all: {nodes: 'n[1-4]', gpus: 'k80:4'}\n"
                           "queues:\n"
                           "  gpu:\n"
                           "    time: 2h\n"
                           "    pools: all\n"
                           "    limits: {user: {gpus: 2, queued: 9}}\n";

Reading read(const std::string& rest)
{
    const auto reading = read_policy(k_head + rest, "p.yaml");
    EXPECT_TRUE(reading) << (reading ? "" : reading.error().text);
    return reading ? *reading : Reading{};
}

std::string findings_of(const std::string& rest)
{
    std::string lines;
    for (const Finding& finding : read(rest).findings) {
        lines += to_line(finding, "p.yaml") + "\n";
    }
    return lines;
}

Policy with_calendar(const std::string& calendar)
{
    const Reading reading = read("    calendar:\n" + calendar);
    EXPECT_THAT(reading.findings, IsEmpty());
    return reading.policy;
}

const std::string k_nights =
    "      - {when: {days: mon-fri, from: \"20:00\", to: \"08:00\"}, time: 24h,\n"
    "         limits: {user: {gpus: 8}}}\n"
    "      - {when: {days: [sat, sun]}, time: 48h}\n";

LocalMinutes at(const std::string& text)
{
    return local_time_of(text);
}

const Queue& queue_at(const Policy& policy, const std::string& time)
{
    static Policy then;
    then = policy_at(policy, at(time));
    return then.queues.front();
}

/// The hours of a queue's time limit.
long hours_at(const Policy& policy, const std::string& time)
{
    return queue_at(policy, time).max_time.value / std::chrono::hours(1);
}

/// The process is in this time zone while it exists.
class TimeZone {
public:
    explicit TimeZone(const char* name) { set(name); }
    ~TimeZone() { set("UTC0"); }
    TimeZone(const TimeZone&) = delete;
    TimeZone& operator=(const TimeZone&) = delete;

private:
    static void set(const char* name)
    {
        ::setenv("TZ", name, 1);
        ::tzset();
    }
};
// Written out, so that the tests need no tzdata.
constexpr const char* k_paris = "CET-1CEST,M3.5.0,M10.5.0/3";
constexpr const char* k_lord_howe =
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"; // changes by half an hour

/// All changes from one time to another, in UTC.
std::vector<std::string> changes_between(const Policy& policy, const std::string& from,
                                         const std::string& to)
{
    std::vector<std::string> times;
    for (auto time = next_change(policy, *time_from_iso8601(from));
         time && *time <= *time_from_iso8601(to); time = next_change(policy, *time)) {
        times.push_back(to_iso8601(*time).substr(5, 11));
    }
    return times;
}

TEST(Calendar, AWindowMayPassMidnightAndBelongsToTheDayOnWhichItBegins)
{
    const Policy policy = with_calendar(k_nights);
    EXPECT_EQ(hours_at(policy, "2026-11-30T07:59"), 2); // Monday: Sunday's nights are not listed
    EXPECT_EQ(hours_at(policy, "2026-11-30T19:59"), 2);
    EXPECT_EQ(hours_at(policy, "2026-11-30T20:00"), 24);
    EXPECT_EQ(hours_at(policy, "2026-12-01T07:59"), 24);
    EXPECT_EQ(hours_at(policy, "2026-12-01T08:00"), 2);
    EXPECT_EQ(hours_at(policy, "2026-12-04T23:59"), 24);
    EXPECT_EQ(hours_at(policy, "2026-12-05T00:00"), 48) << "the last of overlapping entries";
    EXPECT_EQ(hours_at(policy, "2026-12-06T23:59"), 48);
}

TEST(Calendar, AnEntryReplacesOnlyTheValuesThatItNames)
{
    const Policy policy = with_calendar(k_nights);
    const Queue night = queue_at(policy, "2026-11-30T21:00");
    EXPECT_EQ(night.limits.user.gpus->value, 8);
    EXPECT_EQ(night.limits.user.gpus->line, 11);
    EXPECT_EQ(night.limits.user.queued->value, 9);
    EXPECT_EQ(night.max_time.line, 10);
    EXPECT_EQ(night.default_time.value, std::chrono::hours(24)) << "the queue states none";
    EXPECT_THAT(night.calendar, IsEmpty());
    const Queue saturday = queue_at(policy, "2026-12-05T03:00");
    EXPECT_EQ(saturday.limits.user.gpus->value, 8) << "Friday's night, too";
}

TEST(Calendar, ADefaultTimeIsCutToTheTimeOfTheMoment)
{
    const Policy policy =
        with_calendar("      - {when: {from: \"08:00\", to: \"20:00\"}, time: 30m}\n"
                      "    default_time: 1h\n");
    EXPECT_EQ(queue_at(policy, "2026-11-30T12:00").default_time.value, minutes(30));
    EXPECT_EQ(queue_at(policy, "2026-11-30T21:00").default_time.value, minutes(60));
}

TEST(Calendar, ThePolicyOfAMomentIsAnOrdinaryOne)
{
    const Policy policy = with_calendar(k_nights);
    const std::string night = slurm_conf_of(policy_at(policy, at("2026-11-30T21:00")));
    EXPECT_THAT(night, HasSubstr("MaxTime=1-00:00:00"));
    EXPECT_THAT(slurm_conf_of(policy_at(policy, at("2026-11-30T12:00"))),
                HasSubstr("MaxTime=0-02:00:00"));
}

TEST(Calendar, NamesTheEntriesThatAreOpen)
{
    const Policy policy = with_calendar(k_nights);
    EXPECT_EQ(open_hours(policy, at("2026-11-30T12:00")), "");
    EXPECT_EQ(open_hours(policy, at("2026-12-05T03:00")), "gpu:10 gpu:12");
    EXPECT_EQ(open_hours(read("").policy, at("2026-12-05T03:00")), std::nullopt);
    std::vector<std::string> week;
    for (const LocalMinutes time : changes_in_a_week(policy)) {
        week.push_back(weekday_and_time(time));
    }
    EXPECT_THAT(week, ElementsAre("Mon 00:00", "Mon 20:00", "Tue 08:00", "Tue 20:00", "Wed 08:00",
                                  "Wed 20:00", "Thu 08:00", "Thu 20:00", "Fri 08:00", "Fri 20:00",
                                  "Sat 00:00", "Sat 08:00"));
}

TEST(Calendar, ChangesAtTheTimesOfTheClockOnTheWall)
{
    const TimeZone zone(k_paris);
    const Policy policy = with_calendar(
        "      - {when: {days: sat-sun, from: \"08:00\", to: \"20:00\"}, time: 24h}\n");
    // Winter, the night of 28 March to 29 March, summer; then back.
    EXPECT_THAT(changes_between(policy, "2026-03-28T00:00:00Z", "2026-03-30T00:00:00Z"),
                ElementsAre("03-28T07:00", "03-28T19:00", "03-29T06:00", "03-29T18:00"));
    EXPECT_THAT(changes_between(policy, "2026-10-24T00:00:00Z", "2026-10-26T00:00:00Z"),
                ElementsAre("10-24T06:00", "10-24T18:00", "10-25T07:00", "10-25T19:00"));
}

TEST(Calendar, AWindowThatBeginsInAMissingHourOpensAtItsEnd)
{
    const TimeZone zone(k_paris); // 02:00 to 03:00 are missing on 29 March
    const Policy begins =
        with_calendar("      - {when: {from: \"02:30\", to: \"04:00\"}, time: 24h}\n");
    EXPECT_THAT(changes_between(begins, "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"),
                ElementsAre("03-29T01:00", "03-29T02:00"));
    const Policy ends =
        with_calendar("      - {when: {from: \"22:00\", to: \"02:30\"}, time: 24h}\n");
    EXPECT_THAT(changes_between(ends, "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"),
                ElementsAre("03-28T21:00", "03-29T01:00"));
    const Policy inside =
        with_calendar("      - {when: {from: \"02:15\", to: \"02:45\"}, time: 24h}\n");
    EXPECT_THAT(changes_between(inside, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"),
                ElementsAre("03-30T00:15", "03-30T00:45"));
}

TEST(Calendar, TheHourThatOccursTwiceHasItsWindowsTwice)
{
    const TimeZone zone(k_paris); // 02:00 to 03:00 twice on 25 October
    const Policy across =
        with_calendar("      - {when: {from: \"01:00\", to: \"04:00\"}, time: 24h}\n");
    EXPECT_THAT(changes_between(across, "2026-10-24T22:00:00Z", "2026-10-25T12:00:00Z"),
                ElementsAre("10-24T23:00", "10-25T03:00"))
        << "once, four hours long";
    const Policy inside =
        with_calendar("      - {when: {from: \"02:15\", to: \"02:45\"}, time: 24h}\n");
    EXPECT_THAT(changes_between(inside, "2026-10-24T22:00:00Z", "2026-10-25T12:00:00Z"),
                ElementsAre("10-25T00:15", "10-25T00:45", "10-25T01:15", "10-25T01:45"));
}

TEST(Calendar, KnowsZonesThatChangeByHalfAnHour)
{
    const TimeZone zone(k_lord_howe); // 02:00 becomes 02:30 on 4 October
    const Policy policy =
        with_calendar("      - {when: {from: \"02:00\", to: \"03:00\"}, time: 24h}\n");
    EXPECT_THAT(changes_between(policy, "2026-10-03T12:00:00Z", "2026-10-04T12:00:00Z"),
                ElementsAre("10-03T15:30", "10-03T16:00"));
}

TEST(Calendar, LeapDaysAreDaysOfTheWeek)
{
    const TimeZone zone(k_paris);
    const Policy policy =
        with_calendar("      - {when: {days: tue, from: \"20:00\", to: \"08:00\"}, time: 24h}\n");
    // 29 February 2028 is a Tuesday.
    EXPECT_EQ(hours_at(policy, "2028-02-29T20:00"), 24);
    EXPECT_EQ(hours_at(policy, "2028-03-01T07:59"), 24);
    EXPECT_EQ(hours_at(policy, "2028-03-01T08:00"), 2);
    EXPECT_THAT(changes_between(policy, "2028-02-28T00:00:00Z", "2028-03-02T00:00:00Z"),
                ElementsAre("02-29T19:00", "03-01T07:00"));
    EXPECT_EQ(hours_at(policy, "2027-03-02T20:00"), 24) << "a Tuesday without a leap day";
}

TEST(Calendar, ACalendarThatNeverChangesHasNoNextChange)
{
    const Policy policy = with_calendar("      - {when: {days: daily}, time: 24h}\n");
    EXPECT_EQ(next_change(policy, *time_from_iso8601("2026-03-01T00:00:00Z")), std::nullopt);
    EXPECT_EQ(next_change(read("").policy, Time{}), std::nullopt);
}

TEST(Calendar, EveryErrorHasItsPlace)
{
    const std::string found =
        findings_of("    calendar:\n"
                    "      - {when: {days: mon-fry}, time: 24h}\n"
                    "      - {when: {days: [sat, 7]}, time: 24h}\n"
                    "      - {when: {from: 8, to: \"25:00\"}, time: 24h}\n"
                    "      - {when: {from: \"24:00\", to: \"08:60\"}, time: 24h}\n"
                    "      - {when: {from: \"08:00\", to: \"08:00\"}, time: 24h}\n"
                    "      - {when: {}, time: 24h}\n"
                    "      - {when: {days: sat}}\n"
                    "      - {time: 24h}\n"
                    "      - {when: {days: sat, at: 3}, pools: all}\n"
                    "      - {when: {days: []}, time: 24h}\n");
    EXPECT_THAT(
        found,
        AllOf(HasSubstr("p.yaml:10:23: error: 'mon-fry' is not daily, a day such as mon, or a "
                        "range such as mon-fri"),
              HasSubstr("p.yaml:11:29: error: '7' is not daily"),
              HasSubstr("p.yaml:12:23: error: '8' is not a time of day from 00:00 to 23:59"),
              HasSubstr("p.yaml:12:30: error: '25:00' is not a time of day from 00:00 to 24:00"),
              HasSubstr("p.yaml:13:23: error: '24:00' is not a time of day from 00:00 to 23:59"),
              HasSubstr("p.yaml:13:36: error: '08:60' is not a time of day"),
              Not(HasSubstr("p.yaml:12:16")),
              HasSubstr("p.yaml:14:16: error: from and to are the same time"),
              HasSubstr("p.yaml:15:16: error: when needs one of 'days', 'from' and 'to'"),
              HasSubstr("p.yaml:16:9: error: an entry of the calendar needs one of 'time'"),
              HasSubstr("p.yaml:17:9: error: an entry of the calendar needs 'when'"),
              HasSubstr("p.yaml:18:28: error: unknown name 'at'"),
              HasSubstr("p.yaml:18:36: error: unknown name 'pools'"),
              HasSubstr("p.yaml:19:23: error: an empty list of days")));
    EXPECT_THAT(findings_of("    calendar: {when: {days: sat}, time: 24h}\n"),
                HasSubstr("p.yaml:9:15: error: calendar must be a list"));
}

TEST(Calendar, EachOfItsTimesIsChecked)
{
    EXPECT_THAT(findings_of("    default_time: 1h\n"
                            "    calendar:\n"
                            "      - {when: {days: sat}, limits: {job: {gpus: 4}}}\n"),
                HasSubstr("p.yaml:11:50: error: a job may have 4 GPUs, but the user or account "
                          "only 2 (line 8)\n"));
    EXPECT_THAT(findings_of("    calendar:\n"
                            "      - {when: {days: sat}, default_time: 3h}\n"),
                HasSubstr("p.yaml:10:43: error: default_time 3 h is beyond the time 2 h of line 6 "
                          "(from Sat 00:00 on)"));
    EXPECT_THAT(findings_of("    calendar:\n"
                            "      - {when: {days: sat}, limits: {user: {soft_gpus: 1}}}\n"),
                HasSubstr("p.yaml:10:56: error: queue gpu has no soft_gpus outside of this time"));
    std::string many = "    calendar:\n";
    for (std::size_t i = 0; i <= k_most_windows; ++i) {
        many += "      - {when: {days: sat}, time: 4h}\n";
    }
    EXPECT_THAT(findings_of(many), HasSubstr("error: more than 50 hours ('when') in a policy"));
}

TEST(Calendar, ARuleNeedsAnEffectAtSomeTimeOnly)
{
    const std::string other = "  other: {time: 3h, pools: all, limits: {user: {gpus: 2}}}\n";
    EXPECT_THAT(findings_of("    calendar:\n"
                            "      - {when: {days: sat}, time: 4h}\n" +
                            other),
                IsEmpty());
    EXPECT_THAT(findings_of("    calendar:\n"
                            "      - {when: {days: sat}, time: 1h}\n"
                            "  other: {time: 2h, pools: all, limits: {user: {gpus: 2}}}\n"),
                IsEmpty())
        << "shadowed outside of the calendar only";
    EXPECT_THAT(findings_of("    calendar:\n"
                            "      - {when: {days: sat}, default_time: 1h}\n"
                            "  other: {time: 2h, pools: all, limits: {user: {gpus: 2}}}\n"),
                HasSubstr("p.yaml:11: error: queue other is never chosen by default: queue gpu "
                          "(line 5) accepts every job that it accepts; put it first, or allow jobs "
                          "that the other refuses\n"));
    EXPECT_THAT(findings_of("    idle: {after: 3h}\n"
                            "    calendar:\n"
                            "      - {when: {days: sat}, time: 4h}\n"),
                IsEmpty());
    EXPECT_THAT(findings_of("    idle: {after: 4h}\n"
                            "    calendar:\n"
                            "      - {when: {days: sat}, time: 4h}\n"),
                HasSubstr("p.yaml:9: warning: no run of queue gpu lasts that long"));
    const auto soft = [](const std::string& outside, const std::string& on_saturdays) {
        return findings_of("  soft:\n"
                           "    time: 3h\n"
                           "    pools: all\n"
                           "    limits: {user: {gpus: 8, soft_gpus: " +
                           outside +
                           "}}\n"
                           "    calendar:\n"
                           "      - {when: {days: sat}, limits: {user: {soft_gpus: " +
                           on_saturdays + "}}}\n");
    };
    EXPECT_THAT(soft("4", "2"), IsEmpty());
    EXPECT_THAT(soft("16", "2"), IsEmpty()) << "only on Saturdays";
    EXPECT_THAT(soft("4", "16"), IsEmpty()) << "not on Saturdays";
    EXPECT_THAT(soft("8", "16"),
                HasSubstr("p.yaml:12:41: error: soft_gpus 8 never binds: gpus 8 (line 12) does "
                          "first\n"));
}

TEST(Calendar, AFindingIsReportedOnce)
{
    const std::string found = findings_of("    idle: {after: 1m}\n"
                                          "    calendar:\n" +
                                          k_nights);
    EXPECT_THAT(found, HasSubstr("p.yaml:9: warning: after less than 10 min"));
    EXPECT_THAT(found, Not(HasSubstr("(from ")));
}

TEST(Calendar, TestsOfThePolicyHaveATime)
{
    const Reading reading =
        read("    calendar:\n" + k_nights +
             "tests:\n"
             "  - {job: {gpus: 1, time: 24h}, expect: {refused: at most 2 h}}\n"
             "  - {at: 2026-11-30T21:00, job: {gpus: 8, time: 24h, nodes: 2},\n"
             "     expect: {queue: gpu}}\n"
             "  - {at: 2026-12-05T12:00, job: {gpus: 1, time: 49h}, expect: {refused: 2 days}}\n");
    EXPECT_THAT(reading.findings, IsEmpty());
    const Rules rules(reading.policy);
    const CaseReport report = run_cases(rules);
    EXPECT_TRUE(report.results.at(0).passed) << report.results.at(0).got;
    EXPECT_FALSE(report.results.at(1).passed) << "8 GPUs on each of two nodes";
    EXPECT_TRUE(report.results.at(2).passed) << report.results.at(2).got;
    std::vector<std::string> tested;
    for (const RuleCount& rule : report.rules) {
        tested.push_back(fmt::format("{} ({}): {}", rule.rule, rule.line, rule.tests));
    }
    EXPECT_THAT(tested, ElementsAre("queue gpu (5): 0", "queue gpu: time (6): 1",
                                    "queue gpu: time (10): 0", "queue gpu: time (12): 1"));
    EXPECT_THAT(findings_of("tests:\n  - {at: monday, job: {gpus: 1}, expect: {queue: gpu}}\n"),
                HasSubstr("p.yaml:10:10: error: 'monday' is not a local time"));
}

TEST(Calendar, CheckSaysWhatItNeeds)
{
    const Policy policy = with_calendar(k_nights);
    std::string notes;
    for (const Finding& finding : consequences(policy, {22, 5}, "2026-11-30T21:00")) {
        notes += to_line(finding, "p.yaml") + "\n";
    }
    EXPECT_THAT(notes, HasSubstr("p.yaml:10: note: hours need `gpuq policy advance` every minute"));
}

const std::string k_lab =
    "version: 1\n"
    "pools:\n"
    "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
    "  lab:\n"
    "    nodes: l1\n"
    "    gpus: k80:4\n"
    "    owner: lab\n"
    "    lend:\n"
    "      grace: 10m\n"
    "      when: [{days: mon-fri, from: \"20:00\", to: \"08:00\"}, {days: [sat, sun]}]\n"
    "queues:\n"
    "  lab: {time: 48h, pools: lab, allow: {accounts: lab}}\n"
    "  gpu: {time: 24h, pools: [all, lab]}\n";

/// The partitions that are closed.
std::vector<std::string> closed_at(const std::string& text, const std::string& time)
{
    const auto reading = read_policy(text, "p.yaml");
    EXPECT_TRUE(reading && reading->findings.empty());
    std::vector<std::string> closed;
    for (const Object& object : objects_of(policy_at(reading->policy, at(time)))) {
        if (object.kind == Object::Kind::partition && object.fields.contains("State")) {
            closed.push_back(object.name);
        }
    }
    return closed;
}

TEST(Hours, LendingEndsWithNotice)
{
    EXPECT_THAT(closed_at(k_lab, "2026-11-30T19:59"), ElementsAre("gpu-lab"));
    EXPECT_THAT(closed_at(k_lab, "2026-11-30T20:00"), IsEmpty());
    EXPECT_THAT(closed_at(k_lab, "2026-12-01T07:49"), IsEmpty());
    EXPECT_THAT(closed_at(k_lab, "2026-12-01T07:50"), ElementsAre("gpu-lab"))
        << "no job starts that would have no notice";
    EXPECT_THAT(closed_at(k_lab, "2026-12-04T23:55"), IsEmpty()) << "Friday's night goes on";
    EXPECT_THAT(closed_at(k_lab, "2026-12-05T07:55"), IsEmpty()) << "into Saturday";
    EXPECT_THAT(closed_at(k_lab, "2026-12-06T23:49"), IsEmpty());
    EXPECT_THAT(closed_at(k_lab, "2026-12-06T23:50"), ElementsAre("gpu-lab"));
    const Policy policy = read_policy(k_lab, "p.yaml")->policy;
    EXPECT_EQ(open_hours(policy, at("2026-12-01T07:49")), "lab:9");
    EXPECT_EQ(open_hours(policy, at("2026-12-01T07:50")), "");
}

TEST(Hours, APoolThatIsClosedStartsNoJobOfAnyQueue)
{
    std::string text = k_lab;
    text.replace(text.find("    owner: lab\n"), 0, "    when: {from: \"06:00\", to: \"22:00\"}\n");
    EXPECT_THAT(closed_at(text, "2026-11-30T12:00"), ElementsAre("gpu-lab"));
    EXPECT_THAT(closed_at(text, "2026-11-30T21:49"), IsEmpty());
    EXPECT_THAT(closed_at(text, "2026-11-30T21:50"), ElementsAre("gpu-lab", "lab"));
}

TEST(Hours, AreLongerThanTheNotice)
{
    const auto errors_of = [](const std::string& hours) {
        std::string text = k_lab;
        const auto from = text.find("      when:");
        text.replace(from, text.find('\n', from) - from, "      when: " + hours);
        std::string lines;
        const auto reading = read_policy(text, "p.yaml");
        EXPECT_TRUE(reading);
        for (const Finding& finding : reading->findings) {
            lines += to_line(finding, "p.yaml") + "\n";
        }
        return lines;
    };
    EXPECT_THAT(errors_of("{from: \"20:00\", to: \"20:10\"}"),
                HasSubstr("p.yaml:9: error: pool lab: no hours of 'when' are longer than the "
                          "notice time, 10 min (grace): no job would start"));
    EXPECT_EQ(errors_of("{from: \"20:00\", to: \"20:11\"}"), "");
    EXPECT_THAT(errors_of("[]"), HasSubstr("when needs one of"));
    EXPECT_THAT(errors_of("20:00"), HasSubstr("p.yaml:10:13: error: when must be"));
}

} // namespace
} // namespace gpuq::policy
