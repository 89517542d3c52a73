// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/json_page.h"
#include "core/layout.h"
#include "ports/job.h"
#include "runs/idle.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;

/// A run `train`, pending as job 7, under an idle GPU rule.
class Exempt : public testing::Test {
protected:
    Exempt()
        : m_run(m_services.memory, fakes::some_run(m_services.time.now() - 10min, "train", 1))
    {
        m_run.submitted(JobId{7});
        Job job;
        job.id = JobId{7};
        job.comment = job_comment(m_run.key());
        job.state = JobState::pending;
        job.batch = true;
        m_services.slurm.jobs.push_back(job);
        m_services.memory.files[idle_rules_json(m_run.key())] =
            to_json(IdleRules{{"gpu", {30min, 5min, 10min, 4}}});
    }

    Use exempt(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_exempt_verb, m_services, arguments, globals);
    }
    std::optional<Exemption> kept()
    {
        const auto file = m_services.memory.files.find(exempt_json(m_run.key()));
        return file == m_services.memory.files.end()
                   ? std::nullopt
                   : std::optional(*exemption_from_json(file->second));
    }

    FakeServices m_services;
    RunOnDisk m_run;
};

TEST_F(Exempt, LeavesAReasonInTheInbox)
{
    const Use result = exempt({"train", "--reason", "a debugger"});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err, "gpuq: run 7 (train) keeps its GPUs, also idle ones\n");
    ASSERT_TRUE(kept());
    EXPECT_EQ(kept()->reason, "a debugger");
    EXPECT_EQ(kept()->at, m_services.time.now());
    EXPECT_THAT(use(k_show_verb, m_services, {"train"}).out,
                HasSubstr("not released: exempted by " + kept()->by + " (a debugger)\n"));
}

TEST_F(Exempt, TheFirstReasonStays)
{
    exempt({"train", "--reason", "one"});
    const Use result = exempt({"train", "--reason", "another"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("already: one"));
    EXPECT_EQ(kept()->reason, "one");
}

TEST_F(Exempt, WantsARunAndAReasonOfOneLine)
{
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"train"},
                                                      {"--reason", "x"},
                                                      {"train", "--reason", "  "},
                                                      {"train", "--reason", "a\nb"},
                                                      {"train", "--reason", "a\x1b[2J"},
                                                      {"train", "--reason", std::string(501, 'x')},
                                                      {"train", "7", "--reason", "x"}}) {
        EXPECT_EQ(exempt(arguments).status, 2) << arguments.back();
    }
    EXPECT_FALSE(kept());
}

TEST_F(Exempt, SaysWhenNothingWouldHaveBeenTakenBack)
{
    m_services.memory.files.erase(idle_rules_json(m_run.key()));
    Globals globals;
    globals.json = true;
    const Use result = exempt({"train", "--reason", "x"}, globals);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("takes idle GPUs back: it would have kept them anyway"));
    EXPECT_THAT(result.out, HasSubstr("\"takes_idle_gpus_back\": false"));
    EXPECT_THAT(result.out, HasSubstr("\"job\": 7"));
    EXPECT_EQ(members_in(result.out), documented_in("gpuq exempt"));
}

TEST_F(Exempt, ARunThatHasEndedHasNoGpus)
{
    m_run.started(JobId{7}, m_services.time.now() - 5min);
    m_run.ended(Ending{0, Cause::finished, "", m_services.time.now() - 1min});
    EXPECT_EQ(exempt({"train", "--reason", "x"}).status, 121);
    EXPECT_FALSE(kept());
}

} // namespace
} // namespace gpuq::cli
