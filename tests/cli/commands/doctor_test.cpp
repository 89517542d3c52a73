// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Doctor : public testing::Test {
protected:
    Doctor()
    {
        m_services.slurm.self.now = m_services.time.now();
        Partition queue;
        queue.name = "gpu";
        queue.is_default = true;
        queue.max_time = 12h;
        queue.default_time = 2h;
        m_services.slurm.queues = {queue};
        Node node;
        node.name = "n1";
        node.gpus = {{"k80", 4, 0}};
        m_services.slurm.machines = {node};
        m_services.machine.programs["srun"] = "/usr/bin/srun";
        DirectoryFacts facts;
        facts.exists = facts.writable = true;
        facts.owner = ::geteuid();
        facts.mode = 0700;
        facts.file_system = "nfs";
        facts.reach = DirectoryFacts::Reach::network;
        facts.total_bytes = facts.free_bytes = 100ULL << 30U;
        m_services.machine.directories[m_services.memory.root()] = facts;
    }

    Use doctor(const std::vector<std::string>& arguments = {}, const Globals& globals = {})
    {
        return use(k_doctor_verb, m_services, arguments, globals);
    }

    DirectoryFacts& directory() { return m_services.machine.directories[m_services.memory.root()]; }

    FakeServices m_services;
};

TEST_F(Doctor, HasNoComplaintAboutAPlaceThatIsWell)
{
    const Use result = doctor();
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, Not(ContainsRegex("(^|\n)(problem|warning) ")));
    EXPECT_THAT(result.out, HasSubstr("queue gpu (default): at most 12 h, otherwise 2 h"));
    EXPECT_THAT(result.out, ContainsRegex("\nok +srun +/usr/bin/srun\n"));
    EXPECT_THAT(m_services.memory.files, IsEmpty()); // the probe was removed
}

TEST_F(Doctor, AProblemHasARemedyAndStatusOne)
{
    m_services.machine.programs.clear();
    const Use result = doctor();
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, ContainsRegex("\nproblem +srun +srun is not in PATH\\. add"));
}

TEST_F(Doctor, WarnsIfTheCommandForNoticesIsNotFound)
{
    m_services.set.notify = {"tell", "{text}"};
    EXPECT_THAT(doctor().out,
                ContainsRegex("\nwarning +configuration +notify: tell is not in PATH, or is not"));
    m_services.machine.programs["tell"] = "/usr/bin/tell";
    EXPECT_THAT(doctor().out, ContainsRegex("\nok +configuration "));
}

TEST_F(Doctor, ASilentSlurmIsOneProblemAndTheRestUnknown)
{
    m_services.slurm.silent = true;
    const Use result = doctor();
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, ContainsRegex("\nproblem +slurm "));
    EXPECT_THAT(result.out, ContainsRegex("\nunknown +queue "));
    EXPECT_THAT(result.out, ContainsRegex("\nunknown +accounting "));
    EXPECT_THAT(result.out, ContainsRegex("\nok +state-folder "));
}

TEST_F(Doctor, ACheckThatHangsIsAProblemOfItsOwn)
{
    m_services.machine.late = {5}; // the check of the state directory
    m_services.machine.dying[1] = "Slurm's configuration can't be used: line 3\n";
    m_services.machine.truncated = {4};
    const Use result = doctor();
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, ContainsRegex("\nproblem +state-folder +no answer within 25 s"));
    EXPECT_THAT(result.out, ContainsRegex("\nproblem +slurm +the check ended: Slurm's"));
    EXPECT_THAT(result.out, ContainsRegex("\nproblem +srun +the check ended: killed"));
    EXPECT_THAT(result.out, ContainsRegex("\nunknown +supervisor "));
    EXPECT_THAT(result.out, ContainsRegex("\nok +queue "));
}

TEST_F(Doctor, AFullDiskIsFoundByWriting)
{
    m_services.memory.full = true;
    EXPECT_THAT(doctor().out, ContainsRegex("\nproblem +state-folder .*No space left on device"));
    EXPECT_EQ(doctor().status, 1);
    m_services.variables["GPUQ_READONLY"] = "1";
    EXPECT_THAT(doctor().out, ContainsRegex("\nok +state-folder ")) << "nothing may be written";
}

TEST_F(Doctor, AnUnsafeFolderIsNotWrittenTo)
{
    directory().mode = 0777;
    EXPECT_EQ(doctor().status, 1);
    EXPECT_THAT(m_services.memory.written, IsEmpty());
}

TEST_F(Doctor, TheJsonHasEveryCheckWithNullForUnknown)
{
    Globals globals;
    globals.json = true;
    m_services.slurm.self.now.reset();
    const Use result = doctor({}, globals);
    EXPECT_THAT(result.out, HasSubstr("\"schema\": 1"));
    EXPECT_THAT(result.out, AllOf(HasSubstr("\"problems\": 0"), HasSubstr("\"warnings\": 0")));
    EXPECT_THAT(result.out, ContainsRegex("\"check\": \"clock\",[[:space:]]*\"level\": null"));
}

TEST_F(Doctor, ANodeIsAskedOnlyWhenWanted)
{
    doctor();
    EXPECT_THAT(m_services.slurm.specs, IsEmpty());
    m_services.slurm.no_gpu_free = true;
    const Use result = doctor({"--nodes"});
    EXPECT_EQ(result.status, 0);
    ASSERT_EQ(m_services.slurm.specs.size(), 1U);
    EXPECT_EQ(m_services.slurm.specs[0].gpus_per_node, 0);
    EXPECT_EQ(m_services.slurm.specs[0].walltime, 1min);
    EXPECT_THAT(result.out, ContainsRegex("\nunknown +nodes-see-folder +/state is on nfs"));
    EXPECT_THAT(result.out, ContainsRegex("\nunknown +node-clock +no node could be checked"));
    EXPECT_THAT(m_services.memory.files, IsEmpty());
}

TEST_F(Doctor, WhatANodeSawWinsAndItsJobIsEnded)
{
    m_services.slurm.runs_steps = true; // on this machine, which does not have the fake directory
    const Use result = doctor({"--nodes"});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, ContainsRegex("\nproblem +nodes-see-folder +.* does not see /state"));
    EXPECT_THAT(result.out, Not(HasSubstr("is on nfs")));
    EXPECT_EQ(m_services.slurm.requests.back(), "complete 1 0");
}

TEST_F(Doctor, TakesNoWords)
{
    EXPECT_EQ(doctor({"please"}).status, 2);
}

} // namespace
} // namespace gpuq::cli
