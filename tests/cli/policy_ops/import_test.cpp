// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/import.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = SlurmObject::Kind;

class PolicyImport : public testing::Test {
protected:
    FakeServices m_services;
    fakes::FakeAdmin& m_slurm = m_services.ruler;

    PolicyImport()
    {
        m_slurm.files["slurm.conf"] = "KillWait=7\nPriorityType=priority/basic\nNodeName=n1\n"
                                      "AccountingStoragePass=secret\nDownNodes=n2\n";
        m_slurm.nodes = {"n1", "n2"};
        m_slurm.settings = {{"ClusterName", "site"},
                            {"PriorityType", "priority/basic"},
                            {"KillWait", "7 sec"},
                            {"Licenses", ""}};
        m_slurm.partitions["gpu"] = {Kind::partition,
                                     "gpu",
                                     {{"Nodes", "n[1-2]"},
                                      {"MaxTime", "2880"},
                                      {"DefaultTime", "90"},
                                      {"AllowAccounts", "lab,physics"},
                                      {"MaxNodes", "1"},
                                      {"QOS", "part"},
                                      {"DefCpuPerGPU", "4"},
                                      {"PreemptMode", "OFF"},
                                      {"Hidden", "YES"}},
                                     0};
        m_slurm.qos["part"] = {Kind::qos,
                               "part",
                               {{"MaxTRESPU", "gres/gpu=2"},
                                {"GrpTRES", "cpu=8,gres/gpu=4"},
                                {"MaxSubmitPU", "9"},
                                {"Preempt", "low"}},
                               0};
        m_slurm.access["part"] = {Kind::access, "part", {{"accounts", "root"}, {"users", ""}}, 0};
        m_slurm.shares["lab"] = {Kind::share, "lab", {{"fairshare", "7"}}, 0};
        m_slurm.shares["ada@lab"] = {Kind::share, "ada@lab", {{"fairshare", "1"}}, 0};
        m_slurm.limits = {{"lab", "MaxJobs=3"}, {"lab", "GrpTRES=gres/gpu=6"}};
    }

    Use policy(const std::vector<std::string>& arguments, Globals globals = {})
    {
        return use(k_policy_verb, m_services, arguments, std::move(globals));
    }

    /// The plan of the policy that `import` prints.
    Use plan_of_import()
    {
        m_services.files["p.yaml"] = {policy({"import"}).out, 0, 0644};
        return policy({"plan", "p.yaml"});
    }
};

TEST_F(PolicyImport, DescribesEachObject)
{
    const Use done = policy({"import"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("version: 1\nsite:\n"
                                    "  settings:\n"
                                    "    PriorityType: \"priority/basic\"\n"
                                    "  partitions:\n"
                                    "    gpu:\n"
                                    "      AllowAccounts: \"lab,physics\"\n"));
    EXPECT_THAT(done.out, HasSubstr("  shares:\n    lab: \"7\"\n"
                                    "  limits:\n    lab:\n"
                                    "      GrpTRES: \"gres/gpu=6\"\n      MaxJobs: \"3\"\n"
                                    "  reservations: {}\n"
                                    "  scripts: {}\n"));
    EXPECT_THAT(done.err, HasSubstr("6 objects described"));
    EXPECT_EQ(m_slurm.changes, 0);
    EXPECT_EQ(plan_of_import().out, "nothing to do\n");
}

TEST_F(PolicyImport, ListsTheRestWithItsPlace)
{
    const std::string text = policy({"import"}).out;
    EXPECT_THAT(text, HasSubstr("#   slurm.conf:1: KillWait=7\n"));
    EXPECT_THAT(text, HasSubstr("#   slurm.conf:5: DownNodes=n2\n"));
    EXPECT_THAT(text, HasSubstr("#   slurm.conf:4: accountingstoragepass=...\n"));
    EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST_F(PolicyImport, ProposesQueuesAndNamesWhatTheyCannotExpress)
{
    EXPECT_THAT(policy({"import"}).out,
                HasSubstr("#   pools:\n"
                          "#     pool1: {nodes: \"n[1-2]\"}\n"
                          "#   queues:\n"
                          "#     gpu:\n"
                          "#       time: 48h\n"
                          "#       default_time: 90m\n"
                          "#       pools: pool1\n"
                          "#       per_gpu: {cpus: 4}  # also the most that a job gets\n"
                          "#       allow: {accounts: [lab, physics]}\n"
                          "#       limits: {job: {nodes: 1}, user: {gpus: 2, queued: 9}}\n"
                          "#       # not expressible: Hidden=YES\n"
                          "#       # not expressible, of QOS part: GrpTRES=cpu=8,gres/gpu=4 "
                          "Preempt=low\n"));
}

TEST_F(PolicyImport, NamesAndValuesOfAnyBytesAreSafe)
{
    for (const std::string& name : std::vector<std::string>{"a: b",
                                                            "- x",
                                                            "#c",
                                                            "{d}",
                                                            "e\nversion: 2\nf",
                                                            "\"g\"",
                                                            "'h'",
                                                            "\\",
                                                            "null",
                                                            "~",
                                                            "42",
                                                            "&i",
                                                            "*j",
                                                            "!k",
                                                            "%l",
                                                            "\x1b[31m\x7f",
                                                            "ü",
                                                            "?",
                                                            "|",
                                                            ">",
                                                            "@",
                                                            "`"}) {
        m_slurm.qos[name] = {Kind::qos, name, {{"Preempt", name}}, 0};
    }
    m_slurm.qos["\xff"] = {Kind::qos, "\xff", {}, 0};
    m_slurm.files["slurm.conf"] = "KillWait=\x1b]0;x\x07\n";
    const Use done = policy({"import"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(done.out, HasSubstr("(not UTF-8)"));
    const auto reading = policy::read_policy(done.out, "p");
    ASSERT_TRUE(reading) << reading.error().text;
    EXPECT_THAT(reading->findings, IsEmpty());
    m_slurm.qos.erase("\xff"); // the one that the file can't hold
    EXPECT_EQ(plan_of_import().out, "nothing to do\n");
}

TEST_F(PolicyImport, LongListsOfUsersAreCountedInstead)
{
    std::string users = "u0";
    for (int i = 1; i < 5000; ++i) {
        users += ",u" + std::to_string(i);
    }
    m_slurm.access["part"].fields["users"] = users;
    EXPECT_THAT(policy({"import"}).out, HasSubstr("#   access part: users: 5000 users\n"));
    EXPECT_EQ(plan_of_import().out, "nothing to do\n");
    m_slurm.access["part"].fields["accounts"] = "lab";
    EXPECT_THAT(policy({"plan", "p.yaml"}).out,
                HasSubstr("accounts: lab in Slurm, root in the file"));
}

TEST_F(PolicyImport, PlanReportsEachDifference)
{
    ASSERT_EQ(plan_of_import().status, 0);
    m_slurm.partitions["gpu"].fields["MaxTime"] = "60";
    m_slurm.partitions["new"] = {Kind::partition, "new", {}, 0};
    m_slurm.qos.erase("part");
    const Use plan = policy({"plan", "p.yaml"});
    EXPECT_EQ(plan.status, 10);
    EXPECT_THAT(plan.out,
                HasSubstr("site: partition gpu (line 11) differs from the file; gpuq does "
                          "not change it\n    MaxTime: 60 in Slurm, 2880 in the file\n"
                          "site: partition new: not in the file\n"
                          "site: qos part (line 22): not in Slurm\n"));
    EXPECT_THAT(plan.out, HasSubstr("0 changes, 3 differences of the site\n"));
    Globals json;
    json.json = true;
    EXPECT_THAT(policy({"plan", "p.yaml"}, json).out, HasSubstr("\"site\": [\n"));
    EXPECT_EQ(policy({"apply", "p.yaml"}).status, 0) << "they do not block other changes";
    EXPECT_EQ(m_slurm.partitions.at("gpu").fields.at("MaxTime"), "60");
}

TEST_F(PolicyImport, OtherSubcommandsAcceptAPolicyWithoutQueues)
{
    ASSERT_EQ(plan_of_import().status, 0);
    EXPECT_EQ(policy({"check", "p.yaml"}).out, "p.yaml: can be used, 0 errors, 0 warnings\n");
    EXPECT_EQ(policy({"explain", "--policy", "p.yaml", "-t", "1h"}).out,
              "this policy does not apply: it has no queues\n");
    const std::string trace = testing::TempDir() + "gpuq-trace-" + std::to_string(::getpid());
    std::ofstream(trace) << "submit_s,duration_s,gpus\n0,60,1\n";
    const Use simulated = policy({"simulate", "--trace", trace, "p.yaml"});
    std::filesystem::remove(trace);
    EXPECT_EQ(simulated.status, 2);
    EXPECT_THAT(simulated.err, HasSubstr("no queues"));
}

TEST_F(PolicyImport, WritesANewFileOnly)
{
    const std::string path = testing::TempDir() + "gpuq-import-" + std::to_string(::getpid());
    std::filesystem::remove(path);
    const Use done = policy({"import", "--output", path});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out, "");
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), policy({"import"}).out);
    const Use again = policy({"import", "--output", path});
    EXPECT_EQ(again.status, 2);
    EXPECT_THAT(again.err, HasSubstr("exists"));
    std::filesystem::remove(path);
    std::filesystem::create_symlink("nowhere", path);
    EXPECT_EQ(policy({"import", "--output", path}).status, 2) << "follows no link";
    std::filesystem::remove(path);
    EXPECT_EQ(policy({"import", "p.yaml"}).status, 2);
    EXPECT_EQ(policy({"check", "--output", path}).status, 2);
}

TEST_F(PolicyImport, LeavesOutThePolicyInForce)
{
    m_slurm.partitions.clear();
    m_slurm.files["slurm.conf"] = "include /etc/slurm/gpuq/policy.conf\n";
    m_slurm.site_settings = {
        {"AccountingStorageEnforce", "associations,limits,qos,safe"},
        {"AccountingStorageTRES", "gres/gpu"},
        {"JobSubmitPlugins", "lua"},
        {"PriorityType", "priority/multifactor"},
        {"SchedulerParameters", "bf_continue,bf_one_resv_per_job,preempt_youngest_first"}};
    m_slurm.settings = m_slurm.site_settings;
    m_services.files["p.yaml"] = {"version: 1\npools: {all: {nodes: 'n[1-2]'}}\n"
                                  "queues: {short: {time: 2h, pools: all}}\n",
                                  0, 0644};
    const Use applied = policy({"apply", "p.yaml"});
    ASSERT_EQ(applied.status, 0) << applied.err;
    const Use done = policy({"import"});
    EXPECT_THAT(done.out, Not(HasSubstr("short")));
    EXPECT_THAT(done.out, HasSubstr("  scripts: {}\n"));
    EXPECT_THAT(done.out, HasSubstr("    JobSubmitPlugins: \"lua\"\n"));
}

} // namespace
} // namespace gpuq::cli
