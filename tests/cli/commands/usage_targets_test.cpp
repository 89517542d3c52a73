// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/usage_targets.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"
#include "cli/render/targets_text.h"
#include "govern/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Names = std::vector<std::string>;

/// The current time is 2027-01-15 08:00 UTC.
class UsageTargets : public testing::Test {
protected:
    FakeServices m_services;

    UsageTargets()
    {
        m_services.accounted = std::string(
            "Submit|JobID|User|Account|Partition|State|Eligible|Start|ReqTRES|AllocTRES\n");
    }

    void in_force(const std::string& targets)
    {
        (void)m_services.ruler.write(govern::k_applied, "version: 1\n"
                                                        "pools:\n"
                                                        "  all: {nodes: n1, gpus: 'k80:4'}\n"
                                                        "queues:\n"
                                                        "  short: {time: 2h, pools: all, wait: {" +
                                                            targets + "}}\n");
    }
    void started(int count, const std::string& minutes, const std::string& model = "k80")
    {
        for (int i = 0; i < count; ++i) {
            *m_services.accounted += "2027-01-15T06:00:00|1|ada|lab|short|COMPLETED|"
                                     "2027-01-15T06:00:00|2027-01-15T06:" +
                                     minutes + ":00|gres/gpu=1|gres/gpu:" + model +
                                     "=1,gres/gpu=1\n";
        }
    }
    void waits_since(const std::string& time)
    {
        *m_services.accounted += "2027-01-15T" + time + ":00|2|ada|lab|short|PENDING|2027-01-15T" +
                                 time + ":00|Unknown|gres/gpu=1|\n";
    }
    Use targets(const Names& arguments = {}, const Globals& globals = {})
    {
        Names all{"--targets"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return use(k_usage_verb, m_services, all, globals);
    }
};

TEST_F(UsageTargets, AreMet)
{
    in_force("p50: 5m, p95: 30m, max: 2h");
    started(19, "01");
    started(1, "45", "p100");
    const Use done = targets();
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.err, "");
    EXPECT_EQ("\n" + done.out, R"(
QUEUE  MODEL  JOBS  WAITING    P50    P95     MAX  TARGETS
short  all      20        0  1 min  1 min  45 min  p50 5 min: met, p95 30 min: met, max 2 h: met
short  k80      19        0  1 min      ?   1 min
short  p100      1        0      ?      ?  45 min
)");
    EXPECT_EQ(*m_services.accounted_since, m_services.time.now() - 168h);
}

TEST_F(UsageTargets, AreMissedByJobsThatStillWait)
{
    in_force("p50: 5m, p95: 30m, max: 1h");
    started(2, "01");
    waits_since("06:00");
    const Use done = targets();
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.out, HasSubstr(">= 2 h"));
    EXPECT_THAT(done.out, HasSubstr("p50 5 min: met, p95 30 min: unknown, max 1 h: MISSED"));
    EXPECT_EQ(done.err,
              "gpuq: 1 job still waits and counts with that so far: values with >= may grow\n");
}

TEST_F(UsageTargets, OfNobodyAreUnknownAndNotMissed)
{
    in_force("p50: 5m, max: 1h");
    const Use done = targets();
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.out, HasSubstr("?  p50 5 min: unknown, max 1 h: unknown"));
    in_force("");
    EXPECT_THAT(targets().out, HasSubstr("none"));
}

TEST_F(UsageTargets, AreOfTheNamedPolicyWhenThereIsOne)
{
    EXPECT_THAT(targets().err, HasSubstr("--policy FILE"));
    m_services.files["p.yaml"] = {"version: 1\n"
                                  "pools:\n"
                                  "  all: {nodes: n1, gpus: 'k80:4'}\n"
                                  "queues:\n"
                                  "  short: {time: 2h, pools: all, wait: {max: 1m}}\n",
                                  1000, 0644};
    started(1, "02");
    EXPECT_EQ(targets({"--policy", "p.yaml"}).status, 1);
    EXPECT_EQ(targets({"--policy", "none.yaml"}).status, 2);
}

TEST_F(UsageTargets, RefuseWhatIsNotOfThem)
{
    in_force("max: 1m");
    for (const Names& arguments : {Names{"--all"}, Names{"--to", "now"}, Names{"--left"},
                                   Names{"--prometheus", "--csv"}, Names{"--from", "now"}}) {
        EXPECT_EQ(targets(arguments).status, 2) << arguments.front();
    }
    EXPECT_EQ(use(k_usage_verb, m_services, {"--prometheus"}).status, 2);
    EXPECT_EQ(use(k_usage_verb, m_services, {"--policy", "p.yaml"}).status, 2);
    m_services.accounted = fail(Error::Kind::unreachable, "slurmdbd does not answer");
    EXPECT_EQ(targets().status, 120);
}

TEST_F(UsageTargets, WriteCsv)
{
    in_force("p50: 1m, max: 2m");
    started(1, "01");
    started(1, "03");
    EXPECT_EQ(targets({"--csv"}).out,
              "queue,model,jobs,waiting,p50_seconds,p50_target_seconds,p50_met,p95_seconds,"
              "p95_target_seconds,p95_met,max_seconds,max_target_seconds,max_met\r\n"
              "short,all,2,0,60,60,true,,,,180,120,false\r\n"
              "short,k80,2,0,60,,,,,,180,,\r\n");
}

TEST_F(UsageTargets, WriteTheirDocument)
{
    in_force("p95: 1m, max: 1m");
    started(2, "02", "");
    Globals globals;
    globals.json = true;
    const Use done = targets({}, globals);
    EXPECT_EQ(done.status, 1);
    EXPECT_EQ(
        "\n" + std::regex_replace(done.out, std::regex("\"policy\": \".*\""), "\"policy\": \"p\""),
        R"(
{
  "schema": 1,
  "since": "2027-01-08T08:00:00.000000Z",
  "to": "2027-01-15T08:00:00.000000Z",
  "policy": "p",
  "queues": [
    {
      "queue": "short",
      "jobs": 2,
      "waiting": 0,
      "p50_seconds": 120,
      "p95_seconds": null,
      "max_seconds": 120,
      "targets": [
        {
          "figure": "p95",
          "target_seconds": 60,
          "met": null,
          "line": 5
        },
        {
          "figure": "max",
          "target_seconds": 60,
          "met": false,
          "line": 5
        }
      ],
      "models": [
        {
          "model": null,
          "jobs": 2,
          "waiting": 0,
          "p50_seconds": 120,
          "p95_seconds": null,
          "max_seconds": 120
        }
      ]
    }
  ],
  "withdrawn": 0,
  "missed": 1
}
)");
}

TEST_F(UsageTargets, WriteMetricsThatPrometheusReads)
{
    in_force("p50: 1m, p95: 2m, max: 2m");
    started(1, "01");
    started(1, "03");
    const Use done = targets({"--prometheus"});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.out, HasSubstr("# TYPE gpuq_queue_wait_seconds gauge\n"
                                    "gpuq_queue_wait_seconds{queue=\"short\",quantile=\"0.5\"} 60\n"
                                    "gpuq_queue_wait_seconds{queue=\"short\",quantile=\"1\"} 180\n"
                                    "# HELP gpuq_queue_model_wait_seconds "));
    EXPECT_THAT(done.out,
                HasSubstr("gpuq_queue_wait_target_met{queue=\"short\",quantile=\"0.5\"} 1\n"
                          "gpuq_queue_wait_target_met{queue=\"short\",quantile=\"1\"} 0\n# HELP"));
    EXPECT_THAT(done.out, HasSubstr("\ngpuq_wait_timestamp_seconds 1800000000\n"));
    // Every line follows the format; HELP and TYPE appear once, before the samples.
    const std::regex shape(R"(# (HELP|TYPE) gpuq_[a-z_]+ .+|gpuq_[a-z_]+(\{[^{}]+\})? [0-9]+)");
    std::istringstream lines(done.out);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(std::regex_match(line, shape)) << line;
    }
}

TEST(TargetsMetrics, EscapeLabels)
{
    TargetResults results;
    results.queues.push_back({"a\"b\\c\nd", {}, {}, {}});
    EXPECT_THAT(targets_metrics(results),
                HasSubstr("gpuq_queue_wait_jobs{queue=\"a\\\"b\\\\c^Jd\"} 0\n"));
}

} // namespace
} // namespace gpuq::cli
