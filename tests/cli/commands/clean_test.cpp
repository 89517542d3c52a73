// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/json_page.h"
#include "runs/evidence.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Clean : public testing::Test {
protected:
    Time now() { return m_services.time.now(); }

    RunOnDisk run(const std::string& name, std::chrono::seconds age)
    {
        return RunOnDisk(m_services.memory, fakes::some_run(now() - age, name, ++m_number));
    }

    RunOnDisk ended(const std::string& name, std::chrono::seconds age)
    {
        RunOnDisk record = run(name, age + 1h);
        record.submitted(JobId{m_number}).ended({0, Cause::finished, "", now() - age});
        return record;
    }

    Use clean(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_clean_verb, m_services, arguments, globals);
    }

    std::vector<RunKey> left() { return all_runs(m_services.memory).value(); }

    FakeServices m_services;
    unsigned char m_number = 0;
};

TEST_F(Clean, RemovesWhatIsOlderThanAMonthUnlessToldOtherwise)
{
    const auto old = ended("old", 24h * 31);
    const auto newer = ended("newer", 24h * 29);
    const Use result = clean({"--yes"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, ContainsRegex("\n *1 +old "));
    EXPECT_THAT(result.out, Not(HasSubstr("newer")));
    EXPECT_THAT(result.err, ContainsRegex("gpuq: removed 1 run, [0-9]"));
    EXPECT_THAT(left(), ElementsAre(newer.key()));
}

TEST_F(Clean, ADryRunRemovesNothingAndTellsTheSizes)
{
    ended("old", 24h * 31);
    const Use result = clean({"--dry-run"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, ContainsRegex("old .* (bytes|KiB)"));
    EXPECT_THAT(result.err, HasSubstr("would remove 1 run"));
    EXPECT_EQ(left().size(), 1U);
}

TEST_F(Clean, WithoutATerminalItWantsAYes)
{
    ended("old", 24h * 31);
    const Use result = clean({});
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr("--yes"));
    EXPECT_EQ(left().size(), 1U);
}

TEST_F(Clean, NeverTouchesAnActiveRunOrOneNobodyKnows)
{
    auto active = run("active", 24h * 90);
    active.submitted(JobId{50}).started(JobId{50}, now()).beat(JobId{50}, now());
    run("unknown", 24h * 90).submitted(JobId{51});
    ended("old", 24h * 31);
    m_services.slurm.silent = true;
    const Use result = clean({"--yes", "--keep", "0s,1K"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("runs that may be active are kept"));
    EXPECT_EQ(left().size(), 2U);
}

TEST_F(Clean, TheSettingsSayWhatIsKept)
{
    ended("week", 24h * 7);
    m_services.set.keep = Retention{24h * 6, std::nullopt};
    EXPECT_THAT(clean({"-n"}).err, HasSubstr("would remove 1 run"));
    EXPECT_THAT(clean({"-n", "--keep", "8d"}).err, HasSubstr("would remove 0 runs"));
    EXPECT_EQ(clean({"--keep", "8"}).status, 2);
    EXPECT_EQ(clean({"now"}).status, 2);
}

TEST_F(Clean, AFolderThatStaysIsAnError)
{
    ended("old", 24h * 31);
    m_services.memory.read_only = true;
    const Use result = clean({"--yes"});
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("Read-only file system"));
    EXPECT_EQ(left().size(), 1U);
}

TEST_F(Clean, TheJsonTellsWhatWasRemoved)
{
    ended("old", 24h * 31);
    Globals globals;
    globals.json = true;
    const Use dry = clean({"--dry-run"}, globals);
    EXPECT_THAT(dry.out, HasSubstr("\"dry_run\": true"));
    const Use result = clean({"--yes"}, globals);
    EXPECT_THAT(result.out, HasSubstr("\"name\": \"old\""));
    EXPECT_THAT(result.out, HasSubstr("\"dry_run\": false"));
    EXPECT_EQ(members_in(result.out), documented_in("gpuq clean"));
    EXPECT_EQ(result.err, "");
}

} // namespace
} // namespace gpuq::cli
