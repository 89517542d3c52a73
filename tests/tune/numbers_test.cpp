// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/numbers.h"

#include "core/host_list.h"
#include "policy/read.h"
#include "tune/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

namespace gpuq::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string k_text = "version: 1\n"
                           "gpus: {v100: {memory: 32G, weight: 1}}\n"
                           "pools:\n"
                           "  first: {nodes: 'n[01-02]', gpus: 4, owner: fast, lend: {grace: 2m}}\n"
                           "  lab: {nodes: 'lab[1-2]', gpus: 4, owner: lab}\n"
                           "  main:\n"
                           "    nodes: n[03-08]   # the rest\n"
                           "    gpus: 4\n"
                           "queues:\n"
                           "  lab: {time: 48h, pools: lab, allow: {accounts: lab}}\n"
                           "  fast:\n"
                           "    time: 2h          # short\n"
                           "    pools: first\n"
                           "    overflow: main\n"
                           "    limits: {user: {gpus: 8, queued: 100}, account: {gpus: 16}}\n"
                           "  long: {time: 48h, pools: main}\n"
                           "fair_share: {half_life: 7d, shares: {lab: 20}}\n";

policy::Policy read(const std::string& text)
{
    auto reading = policy::read_policy(text, "p.yaml");
    EXPECT_TRUE(reading && !has_errors(reading->findings))
        << (reading ? to_line(reading->findings.at(0), "p.yaml") : reading.error().text);
    return reading->policy;
}

sim::Trace trace_of(const std::string& user, const std::string& account)
{
    sim::Trace trace;
    trace.jobs.resize(1);
    trace.jobs[0].user = user;
    trace.jobs[0].account = account;
    return trace;
}

Numbers numbers(const Selection& selection = {}, const sim::Trace& trace = trace_of("u", "a"))
{
    auto found = numbers_of(read(k_text), k_text, trace, selection);
    EXPECT_TRUE(found) << found.error().text;
    return *found;
}

std::vector<std::string> paths(const Numbers& all)
{
    std::vector<std::string> names;
    for (const Number& number : all.all) {
        names.push_back(number.path);
    }
    return names;
}

TEST(Numbers, AreThoseThatTheSimulationKnowsAndNoAgreements)
{
    EXPECT_THAT(paths(numbers()),
                ElementsAre("pools.first.nodes", "queues.lab.time", "queues.fast.time",
                            "queues.fast.limits.user.gpus", "queues.fast.limits.user.queued",
                            "queues.fast.limits.account.gpus", "queues.long.time",
                            "fair_share.half_life"));
    EXPECT_THAT(paths(numbers({}, trace_of("", ""))),
                ElementsAre("pools.first.nodes", "queues.lab.time", "queues.fast.time",
                            "queues.long.time"));
}

TEST(Numbers, CanBeSelected)
{
    EXPECT_THAT(paths(numbers({{"queues.fast.limits.user", "fair_share.shares"}, {}})),
                ElementsAre("queues.fast.limits.user.gpus", "queues.fast.limits.user.queued",
                            "fair_share.shares.lab"));
    EXPECT_THAT(paths(numbers({{}, {"queues", "fair_share"}})), ElementsAre("pools.first.nodes"));
    EXPECT_THAT(paths(numbers({{"pools.first.lend.grace"}, {}})),
                ElementsAre("pools.first.lend.grace"));
    const auto unknown = numbers_of(read(k_text), k_text, trace_of("u", "a"), {{"queue.fast"}, {}});
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().text, HasSubstr("'queue.fast' is no number"));
}

TEST(Numbers, OneThatIsWrittenOddlyIsLeftAlone)
{
    std::string text = k_text;
    text.replace(text.find("time: 2h "), 9, "time: \"\\x32h\" ");
    const auto found = numbers_of(read(text), text, trace_of("", ""), {});
    ASSERT_TRUE(found);
    EXPECT_THAT(paths(*found),
                ElementsAre("pools.first.nodes", "queues.lab.time", "queues.long.time"));
}

TEST(Numbers, HaveBounds)
{
    const Numbers all = numbers();
    const Number& nodes = all.all[0];
    EXPECT_THAT(nodes.choices, ElementsAre("1", "2", "3", "4", "5", "6", "7"));
    EXPECT_EQ(nodes.now, 1U);
    const Number& time = all.all[2];
    EXPECT_THAT(time.choices, ElementsAre("30m", "45m", "1h", "90m", "2h", "3h", "4h", "6h", "8h"));
    EXPECT_EQ(time.choices[time.now], "2h");
    const Number& gpus = all.all[3];
    EXPECT_THAT(gpus.choices,
                ElementsAre("2", "3", "4", "5", "6", "8", "10", "12", "16", "20", "24", "32"));
}

TEST(Numbers, AChangedFileIsTheOldOneWithThem)
{
    const Numbers all = numbers();
    Point point = all.space().start;
    EXPECT_TRUE(changes_of(all, point)->list.empty());
    point[0] = 3; // four nodes
    point[2] = 8; // 8h
    const auto changes = changes_of(all, point);
    EXPECT_EQ(changes->list, (std::vector<Change>{{"pools.first.nodes", 4, "n[01-02]", "n[01-04]"},
                                                  {"pools.main.nodes", 7, "n[03-08]", "n[05-08]"},
                                                  {"queues.fast.time", 12, "2h", "8h"}}));
    const auto text = with_replaced(k_text, "p.yaml", changes->replacements);
    ASSERT_TRUE(text) << text.error().text;
    EXPECT_EQ(unified_diff(k_text, *text, "a", "b"),
              "--- a\n+++ b\n@@ -1,15 +1,15 @@\n"
              " version: 1\n"
              " gpus: {v100: {memory: 32G, weight: 1}}\n"
              " pools:\n"
              "-  first: {nodes: 'n[01-02]', gpus: 4, owner: fast, lend: {grace: 2m}}\n"
              "+  first: {nodes: 'n[01-04]', gpus: 4, owner: fast, lend: {grace: 2m}}\n"
              "   lab: {nodes: 'lab[1-2]', gpus: 4, owner: lab}\n"
              "   main:\n"
              "-    nodes: n[03-08]   # the rest\n"
              "+    nodes: n[05-08]   # the rest\n"
              "     gpus: 4\n"
              " queues:\n"
              "   lab: {time: 48h, pools: lab, allow: {accounts: lab}}\n"
              "   fast:\n"
              "-    time: 2h          # short\n"
              "+    time: 8h          # short\n"
              "     pools: first\n"
              "     overflow: main\n"
              "     limits: {user: {gpus: 8, queued: 100}, account: {gpus: 16}}\n");
}

TEST(Numbers, APoolThatShrinksGivesItsLastNodes)
{
    const Numbers all = numbers();
    Point point = all.space().start;
    point[0] = 0;
    EXPECT_EQ(changes_of(all, point)->list,
              (std::vector<Change>{{"pools.first.nodes", 4, "n[01-02]", "n01"},
                                   {"pools.main.nodes", 7, "n[03-08]", "n[02-08]"}}));
}

TEST(Numbers, APointWithoutNodesForAPoolIsNotValid)
{
    const std::string text = "version: 1\npools:\n"
                             "  a: {nodes: 'n[1-2]', gpus: 4}\n  b: {nodes: 'n[3-4]', gpus: 4}\n"
                             "  c: {nodes: 'n[5-7]', gpus: 4}\n"
                             "queues: {q: {time: 1h, pools: [a, b, c]}}\n";
    const Numbers all = *numbers_of(read(text), text, trace_of("", ""), {{"pools"}, {}});
    ASSERT_EQ(all.all.size(), 2U);
    EXPECT_TRUE(changes_of(all, {2, 2})) << "3, 3 and 1";
    EXPECT_FALSE(changes_of(all, {3, 2}));
}

/// The values of all numbers in a policy, by path.
std::map<std::string, std::string> values(const Numbers& all)
{
    std::map<std::string, std::string> list;
    for (const Number& number : all.all) {
        list[number.path] = number.choices[number.now];
    }
    for (const Exchange& exchange : all.exchanges) {
        for (const Exchange::Member& member : exchange.members) {
            list["nodes of " + member.pool] = host_list(member.nodes);
        }
    }
    return list;
}

/// Everything that begins with # at the end of a line or in a line of its own.
std::vector<std::string> comments(const std::string& text)
{
    std::vector<std::string> list;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (const std::size_t at = line.find('#'); at != std::string::npos) {
            list.push_back(line.substr(at));
        }
    }
    return list;
}

class Files : public testing::TestWithParam<const char*> {};

TEST_P(Files, AnyPointReadBackHasTheNewValuesAndAllComments)
{
    std::ifstream stream(std::string(GPUQ_POLICIES_DIR "/") + GetParam());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto original = policy::read_policy(text, "p.yaml");
    ASSERT_TRUE(original);
    const sim::Trace trace = trace_of("u", "a");
    const Numbers all = *numbers_of(original->policy, text, trace, {});
    ASSERT_FALSE(all.all.empty());
    const Space space = all.space();
    std::mt19937 random(3);
    for (int i = 0; i < 40; ++i) {
        Point point = space.start;
        for (std::size_t number = 0; number < point.size(); ++number) {
            point[number] = random() % 3 == 0 ? random() % space.sizes[number] : point[number];
        }
        const auto changes = changes_of(all, point);
        if (!changes) {
            continue;
        }
        const auto changed = with_replaced(text, "p.yaml", changes->replacements);
        ASSERT_TRUE(changed) << changed.error().text;
        EXPECT_EQ(comments(*changed), comments(text));
        auto expected = values(all);
        for (const Change& change : changes->list) {
            expected[change.path.ends_with(".nodes") && change.path.starts_with("pools.")
                         ? "nodes of " + change.path.substr(6, change.path.size() - 12)
                         : change.path] = change.to;
        }
        const auto reading = policy::read_policy(*changed, "p.yaml");
        ASSERT_TRUE(reading) << reading.error().text;
        const auto again = numbers_of(reading->policy, *changed, trace, {});
        ASSERT_TRUE(again);
        for (const auto& [path, value] : values(*again)) {
            if (!path.starts_with("pools.")) { // sizes follow from the nodes
                EXPECT_EQ(value, expected[path]) << path << *changed;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Numbers, Files,
                         testing::Values("centre.yaml", "criann.yaml", "teaching.yaml",
                                         "nights.yaml"));

TEST(Diff, KeepsDistantChangesApart)
{
    std::string before;
    for (int i = 1; i <= 20; ++i) {
        before += std::to_string(i) + "\n";
    }
    before += "end";
    std::string after = before;
    after.replace(after.find("2\n"), 1, "two");
    after.replace(after.find("end"), 3, "END");
    EXPECT_EQ(unified_diff(before, after, "a", "b"),
              "--- a\n+++ b\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n"
              "@@ -18,4 +18,4 @@\n 18\n 19\n 20\n-end\n\\ No newline at end of file\n"
              "+END\n\\ No newline at end of file\n");
    EXPECT_EQ(unified_diff(before, before, "a", "b"), "");
    EXPECT_EQ(unified_diff("", "", "a", "b"), "");
}

} // namespace
} // namespace gpuq::tune
