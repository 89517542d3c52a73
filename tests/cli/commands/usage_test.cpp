// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/render/reservation_text.h"
#include "cli/render/usage_text.h"
#include "core/gpu_request.h"
#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Names = std::vector<std::string>;

class Usage : public testing::Test {
protected:
    FakeServices m_services;

    Usage()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        m_services.past.uses = {
            {JobId{1}, "ada", "physics", "short", 1h, 2, {{"k80", 2}}},
            {JobId{2}, "bob", "a,\"b\"", "long", 30min, 1, {}},
        };
    }

    Use usage(const Names& arguments, const Globals& globals = {})
    {
        return use(k_usage_verb, m_services, arguments, globals);
    }
};

TEST_F(Usage, AddsUpAndEndsWithTheSum)
{
    EXPECT_EQ("\n" + usage({"--all", "--by", "user,model"}).out, R"(
USER  MODEL  JOBS  GPU-HOURS  BUSY  IDLE  UNKNOWN  WAIT P50  WAIT P95
ada   k80       1       2.00  0.00  0.00     2.00         ?         ?
bob   any       1       0.50  0.00  0.00     0.50         ?         ?
all             2       2.50  0.00  0.00     2.50         ?         ?
)");
}

TEST_F(Usage, PartsHoursIntoBusyIdleAndUnknownOnesThatAddUpAsPrinted)
{
    m_services.past.uses[0].elapsed = 54s; // on two GPUs: 0.03 GPU-hours
    m_services.past.records[JobId{1}] = {{}, true, "gpuq:KEY busy=36 idle=54 unknown=10", {}, {}};
    m_services.past.records[JobId{2}] = {{}, true, "gpuq:KEY busy=1800 idle=0 unknown=0", {}, {}};
    EXPECT_EQ("\n" + usage({"--all"}).out, R"(
USER  JOBS  GPU-HOURS  BUSY  IDLE  UNKNOWN  WAIT P50  WAIT P95
bob      1       0.50  0.50  0.00     0.00         ?         ?
ada      1       0.03  0.01  0.02     0.00         ?         ?
all      2       0.53  0.51  0.02     0.00         ?         ?
)");
}

TEST_F(Usage, CountsSharesAsFractionsAndAsGpusWhileSlurmIsSilent)
{
    JobUse& shared = m_services.past.uses[0];
    shared.gpus = 0;
    shared.models.clear();
    shared.share = GpuShare{GpuShare::Kind::shard, 1, {}, {}, {}};
    m_services.past.uses.push_back(shared); // requeued: the same job
    Node node;
    node.shares = {{GpuShare::Kind::shard, "", 4, 4, 0, 0}};
    m_services.slurm.machines = {node};
    const Use known = usage({"--all", "--csv"});
    EXPECT_THAT(known.out, HasSubstr("\r\nada,1,1800,"));
    EXPECT_EQ(known.err, "");
    m_services.slurm.silent = true;
    const Use unknown = usage({"--all", "--csv"});
    EXPECT_EQ(unknown.status, 0);
    EXPECT_THAT(unknown.out, HasSubstr("\r\nada,1,7200,"));
    EXPECT_THAT(unknown.err, HasSubstr("slurmctld does not respond, so the size of shares is "
                                       "unknown: 1 job with a share of a GPU counts as if it had "
                                       "all of it"));
    Globals globals;
    globals.json = true;
    EXPECT_THAT(usage({"--all"}, globals).out, HasSubstr(R"("code": "slurm_unreachable")"));
    m_services.slurm.silent = false;
    m_services.slurm.machines.front().shares.clear(); // since then
    EXPECT_THAT(usage({"--all"}).err, HasSubstr("no node has shares of that kind now, so the size "
                                                "of shares is unknown: 1 job"));
    EXPECT_THAT(usage({"--all"}, globals).out, HasSubstr(R"("code": "share_size_unknown")"));
    m_services.slurm.silent = true;
    m_services.past.uses = {{JobId{2}, "bob", "b", "long", 30min, 1, {}}};
    EXPECT_EQ(usage({"--all"}).err, "");
}

TEST_F(Usage, IsOnesOwnSinceTheMonthBegan)
{
    const Time now = m_services.time.now();
    usage({});
    ASSERT_EQ(m_services.past.questions.size(), 1U);
    EXPECT_EQ(m_services.past.questions[0].users.size(), 1U);
    EXPECT_EQ(m_services.past.questions[0].to, now);
    EXPECT_EQ(m_services.past.questions[0].from, *parse_moment("2027-01-01", now));
    usage({"--account", "physics", "--from", "7d", "--to", "today"});
    EXPECT_EQ(m_services.past.questions[1].users, Names{});
    EXPECT_EQ(m_services.past.questions[1].accounts, Names{"physics"});
    EXPECT_EQ(m_services.past.questions[1].from, now - 168h);
    EXPECT_EQ(m_services.past.questions[1].to, *parse_moment("2027-01-15T00:00", now));
}

TEST_F(Usage, RefusesAUserThatNobodyKnows)
{
    const Use done = usage({"--user", "adda"});
    EXPECT_NE(done.status, 0);
    EXPECT_EQ(done.out, "");
    EXPECT_THAT(done.err, HasSubstr("adda"));
}

class UsageLeft : public Usage {
protected:
    UsageLeft()
    {
        m_services.past.granted["ada"] = {
            {"lab", true, {{"ada in lab", 60min, 90s}, {"lab", 600min, 36000s + 1h}}},
            {"mine", true, {}},
            {"other", false, {{"other", 120min, {}}}},
        };
    }
};

TEST_F(UsageLeft, NeverShowsTheUnknownAsANumber)
{
    EXPECT_EQ("\n" + usage({"--left", "--user", "ada"}).out, R"(
ACCOUNT  LIMIT OF    GRANTED   USED  LEFT
lab      ada in lab     1.00   0.03  0.97
lab      lab           10.00  11.00  0.00
mine     no limit          -      -     -
other    other          2.00      ?     ?
other    not shown         -      -     -
)");
    EXPECT_EQ(usage({"--left", "--user", "ada", "--csv"}).out,
              "account,limit,granted_gpu_seconds,used_gpu_seconds,left_gpu_seconds\r\n"
              "lab,ada in lab,3600,90,3510\r\n"
              "lab,lab,36000,39600,0\r\n"
              "mine,no limit,,,\r\n"
              "other,other,7200,,\r\n"
              "other,not shown,,,\r\n");
}

TEST_F(UsageLeft, WritesItsDocument)
{
    Globals globals;
    globals.json = true;
    m_services.past.granted["ada"].erase(m_services.past.granted["ada"].begin());
    EXPECT_EQ("\n" + usage({"--left", "--user", "ada"}, globals).out, R"(
{
  "schema": 1,
  "user": "ada",
  "accounts": [
    {
      "account": "mine",
      "complete": true,
      "limits": []
    },
    {
      "account": "other",
      "complete": false,
      "limits": [
        {
          "holder": "other",
          "granted_gpu_hours": 2.0,
          "used_gpu_hours": null,
          "left_gpu_hours": null
        }
      ]
    }
  ]
}
)");
}

TEST_F(UsageLeft, IsOfOneUserAndOfNow)
{
    EXPECT_EQ(usage({"--left", "--user", "nobody"}).status, 2);
    EXPECT_EQ(usage({"--left", "--user", "ada", "--user", "bob"}).status, 2);
    for (const Names& arguments : {Names{"--from", "7d"}, Names{"--by", "user"}, Names{"--all"}}) {
        Names all = {"--left"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        EXPECT_THAT(usage(all).err, HasSubstr("leave out " + arguments[0]));
    }
}

TEST_F(Usage, WritesCsv)
{
    EXPECT_EQ(usage({"--all", "--csv", "--by", "account"}).out,
              "account,jobs,gpu_seconds,busy_gpu_seconds,idle_gpu_seconds,unknown_gpu_seconds,"
              "wait_p50_seconds,wait_p95_seconds\r\n"
              "physics,1,7200,0,0,7200,,\r\n\"a,\"\"b\"\"\",1,1800,0,0,1800,,\r\n");
}

TEST_F(Usage, WritesNoFormulaForASpreadsheet)
{
    m_services.past.uses = {{JobId{1}, "ada", "=1+2", "s", 4s, 1, {}},
                            {JobId{2}, "ada", "@a", "s", 3s, 1, {}},
                            {JobId{3}, "ada", "-a,\"b", "s", 2s, 1, {}}};
    EXPECT_THAT(usage({"--all", "--csv", "--by", "account"}).out,
                AllOf(HasSubstr("\r\n'=1+2,1,"), HasSubstr("\r\n'@a,1,"),
                      HasSubstr("\r\n\"'-a,\"\"b\",1,")));
}

TEST_F(Usage, OfLabsHasTheWaitsOfTheirJobs)
{
    m_services.past.uses = {{JobId{1}, "ada", "deep", "s", 1h, 1, {}, {}, "physics"},
                            {JobId{2}, "bob", "wide", "s", 1h, 1, {}, {}, "physics"},
                            {JobId{3}, "eve", "gone", "s", 1h, 1, {}}};
    m_services.past.records[JobId{1}].waited = 90s;
    m_services.past.records[JobId{2}].waited = 0s;
    EXPECT_EQ("\n" + usage({"--all", "--by", "lab"}).out, R"(
LAB      JOBS  GPU-HOURS  BUSY  IDLE  UNKNOWN  WAIT P50  WAIT P95
physics     2       2.00  0.00  0.00     2.00       0 s         ?
-           1       1.00  0.00  0.00     1.00         ?         ?
all         3       3.00  0.00  0.00     3.00       0 s         ?
)");
    EXPECT_TRUE(m_services.past.questions.back().with_labs);
    usage({"--all", "--by", "account"});
    EXPECT_FALSE(m_services.past.questions.back().with_labs);
}

TEST_F(Usage, IsAPageWithPartsInPercentAndNamesAsText)
{
    m_services.past.uses[0].account = "<b>&";
    m_services.past.records[JobId{1}] = {{}, true, "gpuq:KEY busy=7199 idle=1 unknown=0", {}, {}};
    const std::string page = usage({"--all", "--by", "account,user", "--html", "-"}).out;
    EXPECT_THAT(page, HasSubstr("<h1>GPU use by account, user</h1>"));
    EXPECT_THAT(page, HasSubstr("<th scope=\"row\">&lt;b&gt;&amp;</th><td>ada</td>"
                                "<td class=\"right\">1</td><td class=\"right\">2.00</td>"
                                "<td class=\"right\">&gt; 99 %</td>"
                                "<td class=\"right\">&lt; 1 %</td><td class=\"right\">0 %</td>"));
    EXPECT_THAT(page, HasSubstr("<dd class=\"now\">2.50</dd>"));
    EXPECT_EQ(usage({"--left", "--html", "-"}).status, 2);
    EXPECT_EQ(usage({"--targets", "--html", "-"}).status, 2);
}

TEST_F(Usage, WritesItsDocument)
{
    Globals globals;
    globals.json = true;
    m_services.past.records[JobId{2}] = {{}, true, "gpuq:KEY busy=1000 idle=500 unknown=1", {}, {}};
    EXPECT_EQ("\n" + usage({"--user", "bob", "--by", "model"}, globals).out, R"(
{
  "schema": 1,
  "from": "2027-01-01T00:00:00.000000Z",
  "to": "2027-01-15T08:00:00.000000Z",
  "by": [
    "model"
  ],
  "rows": [
    {
      "model": null,
      "jobs": 1,
      "gpu_seconds": 1800,
      "gpu_hours": 0.5,
      "busy_gpu_seconds": 1000,
      "idle_gpu_seconds": 500,
      "unknown_gpu_seconds": 300,
      "wait_p50_seconds": null,
      "wait_p95_seconds": null
    }
  ],
  "total": {
    "jobs": 1,
    "gpu_seconds": 1800,
    "gpu_hours": 0.5,
    "busy_gpu_seconds": 1000,
    "idle_gpu_seconds": 500,
    "unknown_gpu_seconds": 300,
    "wait_p50_seconds": null,
    "wait_p95_seconds": null
  },
  "advice": [],
  "warnings": []
}
)");
}

TEST_F(Usage, RefusesWhatItCanNotRead)
{
    for (const Names& arguments :
         {Names{"word"}, Names{"--by", "node"}, Names{"--from", "soon"},
          Names{"--from", "today", "--to", "7d"}, Names{"--all", "--user", "ada"}}) {
        EXPECT_EQ(usage(arguments).status, 2) << arguments.front();
    }
    m_services.past.silent = true;
    EXPECT_EQ(usage({}).status, 120);
}

TEST_F(Usage, HasAnEmptySumWhenThereIsNothing)
{
    m_services.past.uses.clear();
    EXPECT_EQ(usage({"--all"}).out,
              "USER  JOBS  GPU-HOURS  BUSY  IDLE  UNKNOWN  WAIT P50  WAIT P95\n"
              "all      0       0.00  0.00  0.00     0.00         ?         ?\n");
}

TEST(Start, IsTheNextTimeThatTheClockShows)
{
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    const Time now = *parse_moment("2027-01-31T15:00", Time{});
    EXPECT_EQ(*parse_start("16:00", now), now + 1h);
    EXPECT_EQ(*parse_start("14:00", now), now + 23h) << "in February";
    EXPECT_EQ(*parse_start("2027-02-28T15:00", now), now + 28 * 24h);
    EXPECT_FALSE(parse_start("2027-02-29T15:00", now));
}

TEST(Moment, IsReadAsPeopleTypeIt)
{
    ::setenv("TZ", "Europe/Berlin", 1);
    ::tzset();
    const Time now{std::chrono::seconds(1800000000)}; // 2027-01-15 08:00 UTC
    EXPECT_EQ(*parse_moment("2027-01-15T09:00", now), now);
    EXPECT_EQ(*parse_moment("2027-01-15T09:00:00", now), now);
    EXPECT_EQ(*parse_moment("today", now), now - 9h);
    EXPECT_EQ(*parse_moment("12h", now), now - 12h);
    EXPECT_EQ(*parse_moment("now", now), now);
    // In summer the same local time is an hour earlier in UTC.
    EXPECT_EQ(*parse_moment("2026-07-01T12:00", now) - *parse_moment("2026-07-01T00:00", now), 12h);
    EXPECT_FALSE(parse_moment("2027-13-01", now));
    EXPECT_FALSE(parse_moment("2027-02-31", now)) << "not the 3rd of March";
    EXPECT_FALSE(parse_moment("2027-02-29T10:00", now));
    EXPECT_TRUE(parse_moment("2028-02-29T10:00", now));
    EXPECT_FALSE(parse_moment("", now));
    ::setenv("TZ", "UTC", 1);
    ::tzset();
}

} // namespace
} // namespace gpuq::cli
