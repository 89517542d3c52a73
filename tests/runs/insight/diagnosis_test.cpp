// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/diagnosis.h"

#include "ports/accounting.h"
#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Level = Finding::Level;
using testing::HasSubstr;

constexpr Time k_today{std::chrono::sys_days{std::chrono::year{2026} / 11 / 21}};
const Answered k_answered{"lab", 12ms, k_today, k_today + 12ms};

Controller healthy()
{
    return {"22.05.8", "22.05.8", k_today, "", 30s, 0s, true};
}

Finding one(const std::vector<Finding>& findings, const std::string& check)
{
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& row) { return row.check == check; });
    return found == findings.end() ? Finding{"none", Level::unknown, "", ""} : *found;
}

std::vector<Finding> controller_findings(const Controller& controller)
{
    return assess_controller(controller, k_answered);
}

TEST(Diagnosis, AHealthyControllerHasNothingToRemedy)
{
    for (const Finding& finding : controller_findings(healthy())) {
        EXPECT_EQ(finding.level, Level::ok) << finding.check;
        EXPECT_EQ(finding.remedy, "") << finding.check;
    }
    EXPECT_EQ(one(controller_findings(healthy()), "slurm").text, "cluster lab answered in 12 ms");
}

TEST(Diagnosis, MemoryThatIsNotLimitedIsAWarning)
{
    Controller controller = healthy();
    controller.limits_memory = false;
    EXPECT_EQ(one(controller_findings(controller), "memory-limit").level, Level::warning);
    EXPECT_THAT(one(controller_findings(controller), "memory-limit").remedy,
                HasSubstr("ConstrainRAMSpace=yes"));
    controller.counts_memory = false;
    EXPECT_THAT(one(controller_findings(controller), "memory-limit").text,
                HasSubstr("--mem has no effect"));
}

TEST(Diagnosis, HiddenJobsAreNamedAndHiddenQueuesAreAProblem)
{
    Controller controller = healthy();
    controller.private_data = {"jobs", "usage"};
    EXPECT_EQ(one(controller_findings(controller), "private-data").level, Level::ok);
    EXPECT_EQ(one(controller_findings(controller), "private-data").text,
              "PrivateData=jobs,usage: why and free know no jobs of other users");
    controller.private_data = {"partitions"};
    EXPECT_EQ(one(controller_findings(controller), "private-data").level, Level::problem);
}

TEST(Diagnosis, ASlowAnswerIsAWarning)
{
    const auto findings = assess_controller(healthy(), {"lab", 1500ms, k_today, k_today + 1500ms});
    EXPECT_EQ(one(findings, "slurm").level, Level::warning);
}

TEST(Diagnosis, TheLibraryMayBeOlderThanTheControllerButNotNewer)
{
    const auto level = [](const char* server, const char* client) {
        Controller controller = healthy();
        controller.version = server;
        controller.library = client;
        return one(controller_findings(controller), "version").level;
    };
    EXPECT_EQ(level("22.05.8", "22.05.3"), Level::ok);
    EXPECT_EQ(level("23.02.1", "22.05.8"), Level::ok);
    EXPECT_EQ(level("23.11.1", "22.05.8"), Level::warning); // the newest compatible server
    EXPECT_EQ(level("24.11.1", "23.11.8"), Level::ok);
    EXPECT_EQ(level("24.11.1", "23.02.8"), Level::warning);
    EXPECT_EQ(level("22.05.8", "23.02.1"), Level::warning);
    EXPECT_EQ(level("27.11.0", "22.05.8"), Level::unknown);
    EXPECT_EQ(level("", "22.05.8"), Level::unknown);
}

TEST(Diagnosis, AClockIsWrongOnlyBeyondWhatItsSecondsCanTell)
{
    const auto clock = [](std::optional<Time> now) {
        Controller controller = healthy();
        controller.now = now;
        return one(controller_findings(controller), "clock");
    };
    EXPECT_EQ(clock(k_today + 1s).level, Level::ok);
    EXPECT_EQ(clock(k_today - 2s).level, Level::ok);
    EXPECT_EQ(clock(k_today - 5s).level, Level::warning);
    EXPECT_EQ(clock(k_today - 5s).text, "the clock of slurmctld's host is 5 s behind this host's");
    EXPECT_EQ(clock(k_today + 61s).level, Level::problem);
    EXPECT_THAT(clock(k_today + 61s).text, HasSubstr("60 s ahead of"));
    EXPECT_EQ(clock(std::nullopt).level, Level::unknown);
}

TEST(Diagnosis, SchedulerParametersThatDelayRunsAreTold)
{
    Controller controller = healthy();
    controller.scheduler_parameters = "bf_interval=60,defer,batch_sched_delay=20,max_rpc_cnt=50";
    const auto findings = controller_findings(controller);
    EXPECT_EQ(one(findings, "defer").level, Level::warning);
    EXPECT_EQ(one(findings, "batch-sched-delay").level, Level::warning);
    EXPECT_THAT(one(findings, "batch-sched-delay").text, HasSubstr("20 s"));
    EXPECT_THAT(one(findings, "max-rpc-cnt").text, HasSubstr("50"));

    controller.scheduler_parameters = "defer_batch,batch_sched_delay=1";
    EXPECT_EQ(one(controller_findings(controller), "defer").level, Level::ok);
    EXPECT_EQ(one(controller_findings(controller), "batch-sched-delay").level, Level::ok);
}

TEST(Diagnosis, AShortKillWaitIsAWarning)
{
    Controller controller = healthy();
    controller.kill_wait = 5s;
    EXPECT_EQ(one(controller_findings(controller), "kill-wait").level, Level::warning);
}

TEST(Diagnosis, WithoutAnAnswerOnlySlurmIsAProblemAndTheRestIsUnknown)
{
    const auto findings = assess_silence(fail(Error::Kind::unreachable, "can't contact it"));
    EXPECT_EQ(
        findings.front(),
        (Finding{"slurm", Level::problem, "can't contact it",
                 "scontrol ping shows which controller is down; your runs continue meanwhile"}));
    EXPECT_GT(findings.size(), 5U);
    EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                            [](const Finding& row) { return row.level == Level::unknown; }),
              static_cast<long>(findings.size()) - 1);
    EXPECT_EQ(findings.size(), controller_findings(healthy()).size()); // one line per check
}

Partition queue(const std::string& name)
{
    Partition partition;
    partition.name = name;
    partition.max_time = 12h;
    partition.default_time = 2h;
    return partition;
}

Node node(const std::string& name, int gpus)
{
    Node node;
    node.name = name;
    node.gpus = {{"k80", gpus, 0}};
    return node;
}

TEST(Diagnosis, QueuesAreTheirLimits)
{
    Partition open = queue("open");
    open.max_time.reset();
    open.default_time.reset();
    Partition closed = queue("closed");
    closed.up = false;
    Partition main = queue("main");
    main.is_default = true;
    const auto findings = assess_queues({main, open, closed}, {node("n1", 4), node("n2", 4)});
    EXPECT_EQ(findings[0], (Finding{"queue", Level::ok,
                                    "queue main (default): at most 12 h, otherwise 2 h", ""}));
    EXPECT_EQ(findings[1].level, Level::warning);
    EXPECT_EQ(findings[2].level, Level::warning);
    EXPECT_EQ(findings[3], (Finding{"nodes", Level::ok, "2 nodes with 8 GPUs", ""}));
    EXPECT_EQ(findings[4].check, "nodes-submit");
    EXPECT_EQ(findings[4].level, Level::unknown); // the configuration alone is no proof
}

TEST(Diagnosis, ClosedNodesAreNamedAndNoGpuIsAProblem)
{
    Node down = node("n2", 4);
    down.up = false;
    const auto some = one(assess_queues({queue("main")}, {node("n1", 1), down}), "nodes");
    EXPECT_EQ(some.level, Level::warning);
    EXPECT_EQ(some.text, "1 node with 1 GPU; 1 closed: n2");
    EXPECT_EQ(one(assess_queues({queue("main")}, {down}), "nodes").level, Level::problem);
    EXPECT_EQ(one(assess_queues({}, {}), "queue").level, Level::problem);
}

TEST(Diagnosis, AQueueThatTakesJobsOnlyFromSomeHostsIsTold)
{
    Partition picky = queue("picky");
    picky.submit_hosts = "login[1-2]";
    const auto finding = one(assess_queues({picky}, {node("n1", 1)}), "nodes-submit");
    EXPECT_EQ(finding.level, Level::warning);
    EXPECT_THAT(finding.text, HasSubstr("login[1-2]"));
}

TEST(Diagnosis, AccountingAnswersAlsoWithNoSuchJob)
{
    EXPECT_EQ(assess_accounting(true, PastJob{}).level, Level::ok);
    EXPECT_EQ(assess_accounting(true, fail(Error::Kind::missing, "none")).level, Level::ok);
    EXPECT_EQ(assess_accounting(true, fail(Error::Kind::unreachable, "down")).level,
              Level::problem);
    EXPECT_EQ(assess_accounting(false, fail(Error::Kind::unreachable, "none")).level,
              Level::warning);
}

TEST(Diagnosis, SaysWhyAClusterOfOnesOwnRunsWithoutAccounting)
{
    const Finding finding = assess_accounting(false, fail(Error::Kind::unreachable, "none"),
                                              "slurmdbd failed: no plugin");
    EXPECT_EQ(finding.level, Level::warning);
    EXPECT_EQ(finding.text, "the cluster runs without it: slurmdbd failed: no plugin");
    EXPECT_NE(finding.remedy.find("gpuq cluster up"), std::string::npos);
    // slurmdbd has been started since.
    EXPECT_EQ(assess_accounting(true, PastJob{}, "slurmdbd failed").level, Level::ok);
}

DirectoryFacts good_directory()
{
    DirectoryFacts facts;
    facts.exists = true;
    facts.owner = 1000;
    facts.mode = 0700;
    facts.writable = true;
    facts.file_system = "nfs";
    facts.reach = DirectoryFacts::Reach::network;
    facts.total_bytes = 100ULL << 30U;
    facts.free_bytes = 50ULL << 30U;
    return facts;
}

std::vector<Finding> directory(const DirectoryFacts& facts)
{
    return assess_directory("/home/ada/gpuq", facts, 1000);
}

TEST(Diagnosis, AGoodFolderIsOkAndNobodyGuessesThatNodesSeeIt)
{
    const auto findings = directory(good_directory());
    EXPECT_EQ(one(findings, "state-folder").level, Level::ok);
    EXPECT_EQ(one(findings, "space").text,
              "50.0 GiB of 100.0 GiB left below /home/ada/gpuq; your quota on it is not known");
    EXPECT_EQ(one(findings, "nodes-see-folder").level, Level::unknown);
}

TEST(Diagnosis, AFolderThatOthersCanWriteOrThatIsNotOursIsAProblem)
{
    const auto level = [](auto change) {
        DirectoryFacts facts = good_directory();
        change(facts);
        return one(directory(facts), "state-folder").level;
    };
    EXPECT_EQ(level([](DirectoryFacts& f) { f.mode = 0770; }), Level::problem);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.mode = 0750; }), Level::warning);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.owner = 1; }), Level::problem);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.writable = false; }), Level::problem);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.exists = false; }), Level::ok);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.exists = f.writable = false; }), Level::problem);
}

TEST(Diagnosis, LittleRoomIsAWarningAndNoneAProblem)
{
    const auto level = [](auto change) {
        DirectoryFacts facts = good_directory();
        change(facts);
        return one(directory(facts), "space").level;
    };
    EXPECT_EQ(level([](DirectoryFacts& f) { f.free_bytes = 500U << 20U; }), Level::warning);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.free_bytes = 1U << 20U; }), Level::problem);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.free_files = 3; }), Level::problem);
    EXPECT_EQ(level([](DirectoryFacts& f) { f.quota = {9ULL << 30U, 10ULL << 30U}; }), Level::ok);
    EXPECT_EQ(level([](DirectoryFacts& f) {
                  f.quota = {10ULL << 30U, 10ULL << 30U};
              }),
              Level::problem);
    EXPECT_EQ(level([](DirectoryFacts& f) {
                  f.quota = {20ULL << 30U, 10ULL << 30U};
              }),
              Level::problem);
}

TEST(Diagnosis, AFolderInMemoryIsSeenByNobodyElse)
{
    DirectoryFacts facts = good_directory();
    facts.reach = DirectoryFacts::Reach::memory;
    facts.file_system = "tmpfs";
    EXPECT_EQ(one(directory(facts), "nodes-see-folder").level, Level::warning);
    const auto broken =
        assess_directory("/x", fail(Error::Kind::io, "/x: Stale file handle"), 1000);
    EXPECT_EQ(one(broken, "state-folder").level, Level::problem);
    EXPECT_EQ(one(broken, "nodes-see-folder").level, Level::unknown);
}

TEST(Diagnosis, ANodeSaysWhatItSees)
{
    NodeView view = node_view_in("host n1\nclock 1795219200\nfolder yes\nsupervisor yes\n"
                                 "submit no\nnonsense\nsubmit\n");
    EXPECT_EQ(view.host, "n1");
    EXPECT_TRUE(view.sees_directory && view.sees_supervisor);
    EXPECT_EQ(view.may_submit, false);
    EXPECT_EQ(view.clock, Time(1795219200s));
    view.writes_directory = true;
    view.clock = k_today;
    const auto findings = assess_node(view, "/home/ada/gpuq", "/usr/bin/s", k_answered);
    EXPECT_EQ(one(findings, "nodes-see-folder").level, Level::ok);
    EXPECT_EQ(one(findings, "nodes-see-supervisor").level, Level::ok);
    EXPECT_EQ(one(findings, "nodes-submit").level, Level::warning);
    EXPECT_EQ(one(findings, "node-clock").level, Level::ok);

    const auto blind = assess_node(node_view_in("host n1\n"), "/f", "/s", k_answered);
    EXPECT_EQ(one(blind, "nodes-see-folder").level, Level::problem);
    EXPECT_EQ(one(blind, "nodes-see-supervisor").level, Level::problem);
    EXPECT_EQ(one(blind, "nodes-submit").level, Level::unknown);
    EXPECT_EQ(one(blind, "node-clock").level, Level::unknown);
}

} // namespace
} // namespace gpuq
