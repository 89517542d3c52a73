// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/rehearsal.h"

#include "ports/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Act = RehearsalAct;
using Level = Finding::Level;
using Rehearsed = std::vector<RehearsedLink>;

Time at(std::chrono::milliseconds when)
{
    return Time{} + 1000h + when;
}

RehearsedLink::Save save(std::chrono::milliseconds when, std::uint64_t step)
{
    return {at(when), "out/step-" + std::to_string(step) + ".pt", step, 4096};
}

Ending ending(std::chrono::milliseconds when, int status, Cause cause, bool continues)
{
    return {status, cause, "", at(when), continues};
}

Request request()
{
    Request request;
    request.queue = "gpu";
    request.chain = Chain{};
    return request;
}

/// A successful rehearsal: saves every 10 s, gets notice at 12 s and is killed at 33 s.
Rehearsed good()
{
    RehearsedLink first;
    first.started_at = at(0s);
    first.saves = {save(10s, 100), save(13s, 130)};
    first.noticed_at = at(12s);
    first.notified = 1;
    first.ending = ending(14s, 85, Cause::time_limit, true);
    RehearsedLink second;
    second.started_at = at(16s);
    second.resumed_from = "out/step-130.pt";
    second.saves = {save(30s, 270)};
    second.killed_at = at(33s);
    second.ending = ending(33s, 137, Cause::crashed, true);
    RehearsedLink third;
    third.started_at = at(35s);
    third.resumed_from = "out/step-270.pt";
    third.saves = {save(41s, 330)};
    third.noticed_at = at(40s);
    third.notified = 1;
    third.ending = ending(42s, 123, Cause::stopped, false);
    return {first, second, third};
}

std::map<std::string, Level> levels(const RehearsalReport& report)
{
    std::map<std::string, Level> found;
    for (const Finding& one : report.findings) {
        found[one.check] = one.level;
    }
    return found;
}

RehearsalReport judged(const Rehearsed& links, const std::optional<FailureRate>& rate = {})
{
    return evaluate_rehearsal(request(), links, rate, "nobody watched");
}

TEST(RehearsalRequest, IsALineThatIsReadBack)
{
    for (const auto act : {RehearsalRequest::Act::notice, RehearsalRequest::Act::kill}) {
        const RehearsalRequest request{LinkNumber{2}, act};
        EXPECT_EQ(rehearsal_request_in(to_line(request)), request);
    }
    EXPECT_EQ(to_line({LinkNumber{1}, RehearsalRequest::Act::notice}), "1 notice\n");
    for (const char* text :
         {"", "kill", "2 kil\n", "2 kill", "-1 kill\n", "2 kill\n\n", "x kill\n"}) {
        EXPECT_EQ(rehearsal_request_in(text), std::nullopt) << text;
    }
}

TEST(Rehearsal, ReadsAJournal)
{
    std::vector<Event> journal(6);
    journal[0] = {Event::Kind::resumed, at(0s)};
    journal[0].detail = "out/a";
    journal[1] = {Event::Kind::program_started, at(1s)};
    journal[2] = {Event::Kind::checkpoint, at(2s)};
    journal[2].detail = "out/b";
    journal[2].from = 7;
    journal[2].to = 99;
    journal[3] = {Event::Kind::noticed, at(3s)};
    journal[3].to = 2;
    journal[4] = {Event::Kind::signalled, at(4s)};
    journal[4].detail = "KILL for the program: gpuq rehearse";
    journal[5] = {Event::Kind::ended, at(5s)};
    journal[5].status = 137;
    journal[5].cause = Cause::crashed;
    journal[5].continues = true;
    const RehearsedLink link = rehearsed_link(journal);
    EXPECT_EQ(link.started_at, at(1s));
    EXPECT_EQ(link.resumed_from, "out/a");
    ASSERT_EQ(link.saves.size(), 1U);
    EXPECT_EQ(link.saves.front().path, "out/b");
    EXPECT_EQ(link.saves.front().step, 7U);
    EXPECT_EQ(link.noticed_at, at(3s));
    EXPECT_EQ(link.notified, 2U);
    EXPECT_EQ(link.killed_at, at(4s));
    EXPECT_EQ(link.ending->status, 137);
}

TEST(Rehearsal, TellsKillsAndStopsAMomentAfterACheckpoint)
{
    Rehearsed links = good();
    links[0].noticed_at.reset();
    links[0].saves.pop_back();
    links[0].ending.reset();
    links.resize(1);
    EXPECT_EQ(next_act(links, at(11s), 60s), Act::wait);
    EXPECT_EQ(next_act(links, at(12s), 60s), Act::notice);
    links = good();
    links.resize(2);
    links[1].killed_at.reset();
    links[1].ending.reset();
    EXPECT_EQ(next_act(links, at(31s), 60s), Act::kill) << "as long as the first was let alone";
    links[1].killed_at = at(32s);
    EXPECT_EQ(next_act(links, at(33s), 60s), Act::wait);
    links = good();
    links[2].noticed_at.reset();
    links[2].ending.reset();
    EXPECT_EQ(next_act(links, at(43s), 60s), Act::stop);
    EXPECT_EQ(next_act(good(), at(43s), 60s), Act::over);
}

TEST(Rehearsal, WaitsForAProgramThatDoesNotSaveByItself)
{
    EXPECT_EQ(next_act({}, at(0s), 60s), Act::wait);
    Rehearsed links = {RehearsedLink{}};
    EXPECT_EQ(next_act(links, at(500s), 60s), Act::wait) << "it has not begun";
    links[0].started_at = at(0s);
    EXPECT_EQ(next_act(links, at(59s), 60s), Act::wait);
    EXPECT_EQ(next_act(links, at(60s), 60s), Act::notice);
    links[0].noticed_at = at(60s);
    EXPECT_EQ(next_act(links, at(70s), 60s), Act::wait);
    links[0].ending = ending(80s, 85, Cause::time_limit, true);
    EXPECT_EQ(next_act(links, at(81s), 60s), Act::wait) << "for the next link";
    links[0].ending->continues = false;
    EXPECT_EQ(next_act(links, at(81s), 60s), Act::over);
}

TEST(Rehearsal, OfAProgramThatCanDoItHasNoProblem)
{
    const RehearsalReport report = judged(good(), FailureRate{1000h, 10});
    for (const auto& [check, level] : levels(report)) {
        EXPECT_EQ(level, Level::ok) << check;
    }
    EXPECT_EQ(levels(report).size(), 7U);
    EXPECT_EQ(report.save, 1s);
    EXPECT_EQ(report.interval, 10s);
    EXPECT_EQ(report.gap, 2s);
    EXPECT_EQ(report.lost, 3s);
    EXPECT_EQ(report.between_failures, 100h);
    EXPECT_EQ(report.advised, 849s); // sqrt(2 * 1 s * 360000 s)
}

TEST(Rehearsal, SeesThatAProgramBeginsFromTheStart)
{
    Rehearsed links = good();
    links[1].saves = {save(26s, 100)};
    auto found = levels(judged(links));
    EXPECT_EQ(found["resume"], Level::problem);
    // The same, detected from the output, for checkpoints without step numbers.
    links = good();
    for (std::size_t i = 0; i < links.size(); ++i) {
        for (auto& one : links[i].saves) {
            one.step.reset();
        }
        links[i].first = telemetry::Progress{"epoch", 1, 10};
        links[i].last = telemetry::Progress{"epoch", 5, 10};
    }
    found = levels(judged(links));
    EXPECT_EQ(found["resume"], Level::problem);
    EXPECT_EQ(found["kill"], Level::problem);
    links[1].first = links[2].first = telemetry::Progress{"epoch", 6, 10};
    found = levels(judged(links));
    EXPECT_EQ(found["resume"], Level::ok);
    links[1].first.reset();
    links[2].first.reset();
    EXPECT_EQ(levels(judged(links))["resume"], Level::unknown) << "neither by step nor by output";
}

TEST(Rehearsal, SeesThatAProgramFailsWhenItIsToGoOn)
{
    Rehearsed links = good();
    links[1].killed_at.reset();
    links[1].saves.clear();
    links[1].ending = ending(17s, 1, Cause::finished, true);
    const RehearsalReport report = judged(links);
    EXPECT_EQ(levels(report)["resume"], Level::problem);
    links = good();
    links[2].noticed_at.reset();
    links[2].ending = ending(36s, 1, Cause::finished, false);
    EXPECT_EQ(levels(judged(links))["kill"], Level::problem);
}

TEST(Rehearsal, SeesThatNobodySaves)
{
    Rehearsed links = good();
    links.resize(1);
    links[0].saves.clear();
    links[0].ending->continues = false;
    const RehearsalReport report = judged(links);
    EXPECT_EQ(levels(report)["notice"], Level::problem);
    EXPECT_EQ(report.save, std::nullopt);
    EXPECT_EQ(report.advised, std::nullopt);
}

TEST(Rehearsal, OfAProgramThatNobodyCanTellIsAWarning)
{
    Rehearsed links = good();
    links[0].notified = 0;
    const RehearsalReport report = judged(links);
    EXPECT_EQ(levels(report)["notice"], Level::warning);
    EXPECT_EQ(report.save, std::nullopt) << "when it saves is not what a save takes";
    EXPECT_EQ(levels(report)["interval"], Level::unknown);
    EXPECT_EQ(
        report.findings.back().text,
        "the best interval between checkpoints is not known: no checkpoint was seen to follow "
        "a notice, so the time of a save could not be measured");
}

TEST(Rehearsal, OfAProgramThatSavesOnlyWhenToldSaysWhatAKillLoses)
{
    Rehearsed links = good();
    links[0].saves.erase(links[0].saves.begin());
    links[1].saves.clear();
    links[2].resumed_from = "out/step-130.pt";
    const RehearsalReport report = judged(links);
    EXPECT_EQ(report.interval, std::nullopt);
    EXPECT_EQ(report.lost, 17s) << "all since the link began";
    EXPECT_EQ(levels(report)["loss"], Level::warning);
    EXPECT_EQ(levels(report)["resume"], Level::ok) << "link 3 has shown it";
}

TEST(Rehearsal, OfAProgramThatLeavesAtOnceIsAProblem)
{
    RehearsedLink link;
    link.started_at = at(0s);
    link.ending = ending(1s, 0, Cause::finished, false);
    EXPECT_EQ(levels(judged({link}))["start"], Level::problem);
    EXPECT_EQ(levels(judged({}))["start"], Level::problem);
}

TEST(Rehearsal, OfARunThatDoesNotComeBackIsAProblem)
{
    Rehearsed links = good();
    links.resize(2);
    links[1].ending->continues = false;
    links[1].ending->detail = "cancelled";
    const RehearsalReport report = judged(links);
    EXPECT_EQ(levels(report)["kill"], Level::problem);
}

TEST(FailureRateTest, CountsTheNodesOfTheQueueAndWantsAWeek)
{
    const Time now = at(0s);
    NodeHistory history{now - 240h, {{"n0", now}, {"n9", now}, {"n1", now}}};
    const auto rate = failure_rate(history, {"n0", "n1"}, now);
    ASSERT_TRUE(rate);
    EXPECT_EQ(rate->failures, 2);
    EXPECT_EQ(rate->node_time, 480h);
    EXPECT_FALSE(failure_rate(history, {}, now));
    history.since = now - 100h;
    EXPECT_FALSE(failure_rate(history, {"n0"}, now));
}

} // namespace
} // namespace gpuq
