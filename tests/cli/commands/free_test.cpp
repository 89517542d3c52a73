// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/queries/site_context.h"
#include "ports/job.h"
#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <tuple>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class Free : public testing::Test {
protected:
    FakeServices m_services;

    Free()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        m_services.slurm.queues = {Partition{"short", 2h, {}, true, true, false, ""},
                                   Partition{"long", 48h, {}, false, true, false, ""}};
        add_node("n0", "k80", 4, 0);
        add_node("n1", "k80", 4, 1);
    }

    Node& add_node(const std::string& name, const std::string& model, int total, int in_use)
    {
        Node node;
        node.name = name;
        node.gpus = {NodeGpus{model, total, in_use}};
        node.partitions = {"short", "long"};
        node.cpus = 64;
        m_services.slurm.machines.push_back(node);
        return m_services.slurm.machines.back();
    }

    Job& run_on(const std::string& node, std::uint32_t id, int gpus)
    {
        Job job;
        job.id = JobId{id};
        job.state = JobState::running;
        job.nodes = node;
        job.gpus = gpus;
        job.ends_at = m_services.time.now() + 25min;
        m_services.slurm.jobs.push_back(job);
        return m_services.slurm.jobs.back();
    }

    Use free(const std::vector<std::string>& arguments = {}, const Globals& globals = {})
    {
        return use(k_free_verb, m_services, arguments, globals);
    }
};

TEST_F(Free, SaysByWhenOnesOwnJobsStart)
{
    run_on("n0", 7, 4).ends_at = m_services.time.now() + 25min;
    run_on("n1", 8, 4).ends_at = m_services.time.now() + 2h;
    Job waits;
    waits.id = JobId{9};
    waits.name = "train";
    waits.uid = ::getuid();
    waits.state = JobState::pending;
    waits.partition = "short";
    waits.reason = "Resources";
    waits.priority = 1;
    waits.size.gpus = {{"k80", 4}};
    m_services.slurm.jobs.push_back(waits);
    EXPECT_THAT(
        free({"--next"}).out,
        testing::ContainsRegex("your job 9 \\(train\\): starts by 08:25 at the latest, when "
                               "job 7 reaches its time limit; 50 % by 08:.*, 90 % by "
                               "08:.*\n"));
}

TEST_F(Free, CountsReservedGpusForThoseWhoMayUseThem)
{
    const Time now = m_services.time.now();
    const auto reserve = [&](const std::string& name, const std::string& user, Time start) {
        m_services.slurm.kept = {{name, start, start + 1h, "n[0-1]", "", {user}, {}}};
        Globals globals;
        globals.no_header = true;
        globals.columns = "free,blocked";
        return free({}, globals).out;
    };
    run_on("n0", 7, 2);
    EXPECT_EQ(reserve("gpuq:ada:ml", "another", now), "0  5\n");
    EXPECT_EQ(reserve("gpuq:ada:ml", user_name(), now), "5  0\n");
    EXPECT_EQ(reserve("gpuq:ada:ml", "another", now + 1min), "5  0\n");
    // Jobs need --reservation for one that an operator has made.
    EXPECT_EQ(reserve("lecture", user_name(), now), "0  5\n");
}

TEST_F(Free, SaysFirstWhetherThereIsOne)
{
    run_on("n0", 7, 2);
    EXPECT_EQ("\n" + free().out, R"(
yes: 5 k80 in queue short (up to 2 h), at most 3 on one node
MODEL  QUEUES      TOTAL  FREE  USED  DOWN  BLOCKED
k80    long,short      8     5     3     0        0
)");
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("inventory", "reservations"));
}

TEST_F(Free, ShowsFreeSharesWhereGpusAreShared)
{
    m_services.slurm.machines.clear();
    Node& node = add_node("n0", "k80", 2, 0);
    node.shares = {{GpuShare::Kind::shard, "k80", 4, 8, 0, 0}};
    EXPECT_EQ("\n" + free().out, R"(
yes: 2 k80 in queue short (up to 2 h)
MODEL  QUEUES      TOTAL  FREE  USED  DOWN  BLOCKED  FREE SHARES
k80    long,short      2     2     0     0        0  8 of 8 shards
)");
    node.gpus[0].in_use = 2; // one as a whole
    node.shares[0].in_use = 3;
    node.shares[0].gpus = 1;
    EXPECT_EQ("\n" + free().out, R"(
no: 2 in use; 1 of 8 shards of k80 free (-g shard:1); gpuq free --next shows the next ones
MODEL  QUEUES      TOTAL  FREE  USED  DOWN  BLOCKED  FREE SHARES
k80    long,short      2     0     2     0        0  1 of 8 shards
)");
    node.shares[0].in_use = std::nullopt;
    EXPECT_THAT(free().out, HasSubstr("  ? of 8 shards\n"));
    Job waits;
    waits.id = JobId{9};
    waits.state = JobState::pending;
    waits.reason = "Resources";
    waits.size.share = GpuShare{GpuShare::Kind::shard, 1, {}, {}, {}};
    m_services.slurm.jobs.push_back(waits);
    EXPECT_THAT(free({"--next"}).out, HasSubstr("; 1 job waits for shares of GPUs\n"));
}

TEST_F(Free, SaysWhichSharesAreNext)
{
    m_services.slurm.machines.clear();
    Node& node = add_node("n0", "k80", 1, 1);
    node.shares = {{GpuShare::Kind::shard, "k80", 4, 4, 4, 1}};
    const Time now = m_services.time.now();
    for (const auto& [id, parts, end] :
         {std::tuple(7U, 1, now + 25min), std::tuple(8U, 3, now + 2h)}) {
        Job& job = run_on("n0", id, 0);
        job.ends_at = end;
        job.held.shares = {{"n0", "k80", GpuShare::Kind::shard, parts, {0}}};
    }
    EXPECT_EQ("\n" + free({"--next"}).out, R"(
no: 1 in use; the next: 1 k80 by 10:00 at the latest; the next share: 1 shard of k80 by 08:25 at the latest
BY     IN      GPUS  MODEL  QUEUES      NODE  JOB  SHARES
08:25  25 min     0  k80    long,short  n0      7  1 shard
10:00  2 h        1  k80    long,short  n0      8  3 shards
)");
    Globals globals;
    globals.json = true;
    EXPECT_THAT(free({"--next"}, globals).out, HasSubstr(R"("share": {
        "kind": "shard",
        "parts": 3
      })"));
    m_services.slurm.jobs.back().ends_at = std::nullopt;
    EXPECT_THAT(free({"--next"}).out, HasSubstr("no: 1 in use; time of the next one unknown; the "
                                                "next share: 1 shard of k80 by 08:25"));
}

TEST_F(Free, CountsGpusWithoutAModel)
{
    m_services.slurm.machines.clear();
    add_node("n0", "", 4, 1);
    EXPECT_THAT(free().out, testing::StartsWith("yes: 3 GPUs in queue short (up to 2 h)\n"));
}

TEST_F(Free, SaysWhichIsNext)
{
    run_on("n0", 7, 4);
    run_on("n1", 8, 3).ends_at = m_services.time.now() + 2h;
    Job waits;
    waits.id = JobId{9};
    waits.state = JobState::pending;
    waits.uid = ::getuid() + 1;
    waits.gpus = 2;
    waits.reason = "Resources";
    m_services.slurm.jobs.push_back(waits);
    EXPECT_EQ("\n" + free({"--next"}).out, R"(
no: 8 in use; the next: 4 k80 by 08:25 at the latest; 1 job waits for 2 GPUs
BY     IN      GPUS  MODEL  QUEUES      NODE  JOB
08:25  25 min     4  k80    long,short  n0      7
10:00  2 h        3  k80    long,short  n1      8
)");
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("inventory", "reservations", "all_jobs"));
    add_node("n2", "k80", 4, 2);
    EXPECT_THAT(free({"--next"}).out,
                HasSubstr("perhaps: 2 k80 in queue short (up to 2 h); 1 job waits for 2 GPUs\n"));
    m_services.slurm.machines.pop_back();
    EXPECT_THAT(free().out, HasSubstr("no: 8 in use; gpuq free --next shows the next ones\n"));
}

class FreeFor : public Free {
protected:
    FreeFor()
    {
        for (Node& node : m_services.slurm.machines) {
            node.gpus[0].in_use = 4;
        }
        for (std::uint32_t id : {7U, 8U}) {
            Job& job = run_on(id == 7 ? "n0" : "n1", id, 4);
            job.started_at = m_services.time.now() - 10min;
            job.ends_at = m_services.time.now() + 24h;
            job.held.whole = {{job.nodes, "k80", 4}};
            job.partition = "long";
        }
    }

    void wait_behind(int jobs)
    {
        for (int i = 0; i < jobs; ++i) {
            Job waits;
            waits.id = JobId{static_cast<std::uint32_t>(10 + i)};
            waits.state = JobState::pending;
            waits.uid = ::getuid() + 1;
            waits.partition = "short";
            waits.walltime = 2h;
            waits.reason = "Resources";
            waits.priority = 5;
            waits.gpus = 4;
            waits.size.gpus = {{"", 4}};
            m_services.slurm.jobs.push_back(waits);
        }
    }
};

TEST_F(FreeFor, ForecastsARunBeforeItIsSubmittedWithoutFurtherRequests)
{
    wait_behind(3);
    const std::string out = free({"--for", "-g", "2", "-t", "2h"}).out;
    EXPECT_THAT(out, testing::ContainsRegex(
                         "^2 GPUs for 2 h in queue short: starts by .* \\(in .*\\) with a "
                         "probability of 50 %, by .* \\(in .*\\) with 90 %\n"
                         "as the last in line, behind 3 waiting jobs; few jobs have been seen to "
                         "end here: their run times are assumed\n$"));
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("inventory", "reservations", "all_jobs"));
}

TEST_F(FreeFor, StartsAtOnceWhereThereIsRoom)
{
    m_services.slurm.jobs.clear();
    EXPECT_THAT(
        free({"--for", "-t", "1h"}).out,
        testing::StartsWith("1 GPU for 1 h in queue short (default: 1 GPU): starts at once\n"));
}

TEST_F(FreeFor, ReportsWhyItIsUnknown)
{
    m_services.slurm.hides_others = true;
    EXPECT_THAT(free({"--for", "-t", "1h"}).out,
                HasSubstr(": start not known: the jobs of other users are hidden here\n"));
    m_services.slurm.hides_others = false;
    EXPECT_THAT(
        free({"--for", "-t", "1h", "-g", "16"}).out,
        HasSubstr(": start not known: the nodes that are up in its queue lack the resources "
                  "it asks for\n"));
}

/// It is Friday, 08:00.
TEST_F(FreeFor, KnowsTheHoursOfThePools)
{
    wait_behind(3);
    m_services.slurm.queues[0].ruled = true;
    const auto forecast = [&](const std::string& to) {
        m_services.ruler.files["applied.yaml"] =
            "version: 1\npools:\n  all: {nodes: 'n[0-1]', gpus: 'k80:4', when: {to: '" + to +
            "'}}\nqueues:\n  short: {time: 2h, pools: all}\n";
        return free({"--for", "-g", "2", "-t", "2h"}).out;
    };
    EXPECT_THAT(forecast("09:00"),
                HasSubstr("start not known: the hours of its pools end on Fri 08:55, before it "
                          "would start\n"));
    EXPECT_THAT(forecast("22:00"),
                testing::ContainsRegex("starts by .* \\(in .*\\) with a probability of 50 %; the "
                                       "hours of its pools end on Fri 21:55\n"));
}

TEST_F(FreeFor, HasItsJson)
{
    wait_behind(1);
    Globals globals;
    globals.json = true;
    const std::string out = free({"--for", "-g", "2", "-t", "90"}, globals).out;
    EXPECT_THAT(out, testing::ContainsRegex(R"("for": \{
    "queue": "short",
    "nodes": 1,
    "gpus": 2,
    "time_limit": 5400,
    "ahead": 1,
    "start_p50": "20.*Z",
    "start_p90": "20.*Z",
    "start_unknown": null,
    "jobs_observed": 0
  \},)"));
}

TEST_F(FreeFor, RefusesOptionsThatDoNotFit)
{
    EXPECT_THAT(free({"-g", "2"}).err, HasSubstr("free: --gpus describes a run: add --for"));
    EXPECT_THAT(free({"--for", "--next"}).err,
                HasSubstr("free: --for and --next exclude each other"));
    EXPECT_THAT(free({"--for", "-t", "2:30"}).err, HasSubstr("2:30"));
    EXPECT_THAT(free({"--for", "-t", "100h"}).err, HasSubstr("2 days"));
    EXPECT_EQ(free({"--for", "-p", "none"}).status, 2);
}

TEST_F(Free, KeepsTheUnknownUnknown)
{
    m_services.slurm.machines.clear();
    add_node("n0", "k80", 4, 0).gpus[0].in_use = std::nullopt;
    EXPECT_EQ("\n" + free().out, R"(
unknown: Slurm does not report which GPUs are in use
MODEL  QUEUES      TOTAL  FREE  USED  DOWN  BLOCKED
k80    long,short      4     ?     ?     0        0
)");
    Globals globals;
    globals.json = true;
    const std::string document = free({}, globals).out;
    EXPECT_THAT(document, HasSubstr("\"free_now\": null"));
    EXPECT_THAT(document, HasSubstr("\"in_use\": null"));
    EXPECT_THAT(document, HasSubstr("\"next\": null"));
}

TEST_F(Free, PrintsOnlyTheColumnsAskedFor)
{
    Globals globals;
    globals.columns = "model,free";
    globals.no_header = true;
    EXPECT_EQ(free({}, globals).out, "k80  7\n");
    globals.columns = "job";
    EXPECT_EQ(free({}, globals).status, 2);
    EXPECT_EQ(free({"word"}).status, 2);
}

TEST_F(Free, SaysSoWhenThereIsNoGpuOrNoAnswer)
{
    m_services.slurm.machines.clear();
    EXPECT_EQ(free().out, "no: this cluster has no GPU\n");
    m_services.slurm.silent = true;
    EXPECT_EQ(free().status, 120);
}

TEST_F(Free, WritesItsDocument)
{
    m_services.slurm.machines.pop_back();
    run_on("n0", 7, 3);
    Globals globals;
    globals.json = true;
    EXPECT_EQ("\n" + free({"--next"}, globals).out, R"(
{
  "schema": 1,
  "cluster": "lab",
  "free_now": true,
  "pools": [
    {
      "model": "k80",
      "queues": [
        "long",
        "short"
      ],
      "total": 4,
      "free": 1,
      "in_use": 3,
      "down": 0,
      "blocked": 0,
      "most_on_one_node": 1,
      "shares": null
    }
  ],
  "queues": [
    {
      "name": "short",
      "up": true,
      "default": true,
      "time_limit": 7200,
      "default_time": null
    },
    {
      "name": "long",
      "up": true,
      "default": false,
      "time_limit": 172800,
      "default_time": null
    }
  ],
  "next": [
    {
      "at": "2027-01-15T08:25:00.000000Z",
      "gpus": 3,
      "model": "k80",
      "queues": [
        "long",
        "short"
      ],
      "node": "n0",
      "job": 7,
      "share": null
    }
  ],
  "own_waiting": [],
  "waiting": {
    "jobs": 0,
    "gpus": 0
  },
  "for": null,
  "reservations": []
}
)");
}

} // namespace
} // namespace gpuq::cli
