// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/tune.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"
#include "cli/policy_ops/tuning_journal.h"
#include "core/layout.h"
#include "tune/small_site.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

class PolicyTune : public testing::Test {
protected:
    FakeServices m_services;
    fs::path m_dir;

    void SetUp() override
    {
        std::string name = fs::temp_directory_path() / "gpuq-tune-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        m_dir = name;
        m_services.files["p.yaml"] = {tune::testing::k_policy, 0, 0644};
        std::ofstream file(trace());
        file << "submit_s,duration_s,gpus\n";
        for (const sim::TraceJob& job : tune::testing::trace_of(3).jobs) {
            file << fmt::format("{},{},1\n", job.submit.count(), job.duration.count());
        }
    }
    void TearDown() override { fs::remove_all(m_dir); }

    std::string trace() const { return m_dir / "t.csv"; }
    Use tuned(std::vector<std::string> arguments, Globals globals = {})
    {
        arguments.insert(arguments.begin(), {"tune", "--trace", trace(), "p.yaml"});
        return use(k_policy_verb, m_services, arguments, std::move(globals));
    }
    static std::string content(const fs::path& path)
    {
        std::ifstream stream(path);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
};

TEST_F(PolicyTune, PrintsTheChoicesTheDiffAndWhetherTheyHoldInOtherWeeks)
{
    const Use shown =
        tuned({"--target", "fast: p95<=10m", "--keep", "long: +20%", "--simulations", "60"});
    EXPECT_EQ(shown.status, 0) << shown.err << shown.out;
    EXPECT_THAT(shown.out, HasSubstr("t.csv: searched in weeks 1 to 2, checked in week 3; "));
    EXPECT_THAT(shown.out, ContainsRegex("AS IT IS +CHOICE 1"));
    EXPECT_THAT(shown.out, ContainsRegex("fast: p95<=10m +! [0-9].*\n  in week 3 "));
    EXPECT_THAT(shown.out, HasSubstr("--- p.yaml\n+++ p.yaml (choice 1)\n"));
    EXPECT_THAT(shown.out, HasSubstr("-    nodes: n1            # for short runs\n"
                                     "+    nodes: n[1-2]        # for short runs\n"));
    EXPECT_THAT(shown.out, HasSubstr("choice 1 is recommended: in week 3, which the search did "
                                     "not see, it holds every target and bound\n"));
}

TEST_F(PolicyTune, WritesTheChoiceToANewFileOnly)
{
    const std::string file = m_dir / "new.yaml";
    const Use shown = tuned({"--simulations", "40", "--output", file});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.err, HasSubstr("wrote choice 1 to " + file));
    EXPECT_THAT(content(file), HasSubstr("nodes: n[1-2]        # for short runs\n"));
    const Use again = tuned({"--simulations", "40", "--output", file});
    EXPECT_EQ(again.status, 2);
    EXPECT_THAT(again.err, HasSubstr("new.yaml exists"));
    const Use none = tuned({"--simulations", "40", "--choice", "9"});
    EXPECT_EQ(none.status, 2);
    EXPECT_THAT(none.err, HasSubstr("--choice 9: there "));
}

TEST_F(PolicyTune, ContinuesWithWhatItKnows)
{
    const Use first = tuned({"--simulations", "20"});
    EXPECT_THAT(first.err, Not(HasSubstr("earlier search")));
    const Use second = tuned({"--simulations", "20"});
    EXPECT_THAT(second.err, HasSubstr("simulations known from an earlier search"));
    EXPECT_EQ(second.out, first.out);
    const auto journals = m_services.memory.list(layout::tunings());
    ASSERT_TRUE(journals);
    EXPECT_EQ(journals->size(), 1U);
    tuned({"--simulations", "20", "--target", "fast: p50<=1m"});
    EXPECT_EQ(m_services.memory.list(layout::tunings())->size(), 2U);
}

TEST_F(PolicyTune, ReportsATargetThatNoPolicyCanHold)
{
    std::ofstream file(trace());
    file << "submit_s,duration_s,gpus\n";
    for (int hour = 0; hour < 14 * 24; hour += 2) { // 16 runs of two hours in two hours on 12 GPUs
        for (int i = 0; i < 16; ++i) {
            file << fmt::format("{},7190,1\n", hour * 3600);
        }
    }
    file.close();
    const Use shown = tuned({"--simulations", "5", "--target", "fast: p95<=10m"});
    EXPECT_EQ(shown.status, 11) << shown.err;
    EXPECT_THAT(shown.out,
                AllOf(HasSubstr("no policy can hold 'fast: p95<=10m': alone on all GPUs, without "
                                "any limit, 95 % of the runs would wait up to "),
                      ContainsRegex("; these runs need 13[34].[0-9] % of the GPU time"),
                      ContainsRegex("all runs together need 13[34].[0-9] % of the GPU time")));
}

TEST_F(PolicyTune, RefusesWhatItCanNotSearch)
{
    const auto error = [&](const std::vector<std::string>& options) {
        const Use shown = tuned(options);
        EXPECT_EQ(shown.status, 2) << shown.out;
        return shown.err;
    };
    EXPECT_THAT(error({"--target", "fast"}), HasSubstr("expected QUEUE: p95<=5m"));
    EXPECT_THAT(error({"--target", "slow: p95<=5m"}), HasSubstr("no runs of 'slow'"));
    EXPECT_THAT(error({"--keep", "long: 20%"}), HasSubstr("expected QUEUE: +20%"));
    EXPECT_THAT(error({"--simulations", "0"}), HasSubstr("--simulations: a number from 1"));
    EXPECT_THAT(error({"--vary", "queues.slow"}), HasSubstr("'queues.slow' is no number"));
    EXPECT_THAT(error({"--against", "p.yaml"}), HasSubstr("policy tune takes no --against"));
}

TEST_F(PolicyTune, GivesADocument)
{
    Globals json;
    json.json = true;
    const Use shown = tuned({"--simulations", "40"}, json);
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, AllOf(HasSubstr("\"recommended\": 1"), HasSubstr("\"schema\": 1"),
                                 HasSubstr("\"goal\": \"fast: p95<=10m\"")));
}

TEST(TuningJournal, SurvivesDamageAndKeepsTheNewest)
{
    fakes::MemoryStore store;
    const std::string path = layout::tuning(7);
    ASSERT_TRUE(store.write(path, "2026-11-29T11:00:00.000000Z\n0000000000000001 5 never\n"
                                  "garbage\n0000000000000002 6"));
    {
        TuningJournal journal(store, 7, Time{});
        EXPECT_EQ(journal.known(), (tune::Known{{1, {5s, tune::k_never}}}));
        EXPECT_TRUE(journal.add(3, {7s, 8s}));
    }
    EXPECT_EQ(TuningJournal(store, 7, Time{}).known().count(3), 1U);
    for (std::uint64_t i = 100; i < 130; ++i) {
        TuningJournal journal(store, i, Time{std::chrono::hours{i}});
        EXPECT_TRUE(journal.add(1, {1s}));
    }
    EXPECT_EQ(store.list(layout::tunings())->size(), 20U);
    EXPECT_TRUE(store.read(layout::tuning(129)));
    EXPECT_FALSE(store.read(layout::tuning(100)));
}

} // namespace
} // namespace gpuq::cli
