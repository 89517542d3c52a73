// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/read.h"

#include "policy/cases.h"
#include "policy/check.h"
#include "policy/lua.h"
#include "policy/objects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace gpuq::policy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string shipped(const std::string& name)
{
    std::ifstream file(std::string(GPUQ_POLICIES_DIR) + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// All findings, one per line, or the YAML error.
std::string findings(const std::string& text)
{
    const auto reading = read_policy(text, "p.yaml");
    if (!reading) {
        return reading.error().text;
    }
    std::string lines;
    for (const Finding& finding : reading->findings) {
        lines += to_line(finding, "p.yaml") + "\n";
    }
    return lines;
}

const std::string k_small = "version: 1\n"
                            "pools:\n"
                            "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
                            "queues:\n"
                            "  short: {time: 2h, pools: all}\n";

/// `k_small` with one additional queue.
std::string with_queue(const std::string& text)
{
    return k_small + "  other: " + text + "\n";
}

TEST(ReadPolicy, TakesTheShippedOnes)
{
    for (const char* name : {"minimal.yaml", "workstation.yaml", "criann.yaml", "centre.yaml",
                             "teaching.yaml", "nights.yaml"}) {
        const auto reading = read_policy(shipped(name), name);
        ASSERT_TRUE(reading) << reading.error().text;
        EXPECT_THAT(reading->findings, IsEmpty())
            << name << ": " << to_line(reading->findings.front(), name);
        EXPECT_FALSE(reading->policy.tests.empty()) << name;
    }
}

TEST(ReadPolicy, KeepsValuesAndTheirLines)
{
    const Policy policy = read_policy(shipped("criann.yaml"), "criann.yaml")->policy;
    const Queue& queue = *policy.queue("calibration");
    EXPECT_EQ(queue.max_time.value, std::chrono::hours{2});
    EXPECT_EQ(queue.default_time.value, std::chrono::hours{1});
    EXPECT_EQ(queue.pools.value, (std::vector<std::string>{"calib", "visu", "lab"}));
    EXPECT_EQ(queue.limits.user.soft_gpus->value, 2);
    EXPECT_EQ(queue.limits.user.soft_gpus->line, queue.limits.user.queued->line - 1);
    EXPECT_EQ(queue.memory_per_gpu_mib->value, 16U * 1024);
    EXPECT_EQ(policy.pool("main")->nodes.value.size(), 13U);
    EXPECT_EQ(policy.pool("main")->nodes.value.front(), "gpu02");
    EXPECT_EQ(policy.model("k80")->weight.value, 0.25);
    EXPECT_EQ(policy.pool("lab")->lend->min_run.value, std::chrono::minutes{15});
}

TEST(ReadPolicy, FindsEverythingThatIsWrongAtOnce)
{
    const std::string text = findings("version: 2\n"
                                      "pools:\n"
                                      "  all: {node: n1, gpus: 0}\n"
                                      "queues:\n"
                                      "  short: {time: 120, pools: all, limits: {user: {gpu: 1}}}\n"
                                      "  9x: {time: 1h, pools: all}\n"
                                      "quues: {}\n");
    EXPECT_THAT(text, HasSubstr("p.yaml:1:10: error: this gpuq reads version 1 only"));
    EXPECT_THAT(text, HasSubstr("p.yaml:3:9: error: unknown name 'node' (did you mean 'nodes'?)"));
    EXPECT_THAT(text, HasSubstr("pool all needs 'nodes'"));
    EXPECT_THAT(text, HasSubstr("'0' is not a number of GPUs"));
    EXPECT_THAT(text, HasSubstr("'120' is not a length of time such as 90s, 30m, 2h or 7d: needs a "
                                "unit"));
    EXPECT_THAT(text, HasSubstr("unknown name 'gpu' (did you mean 'gpus'?) in the limits of a "
                                "user; there are: gpus, soft_gpus"));
    EXPECT_THAT(text, HasSubstr("'9x' is not a name"));
    EXPECT_THAT(text, HasSubstr("unknown name 'quues' (did you mean 'queues'?)"));
}

TEST(ReadPolicy, RefusesWhatYamlWouldHide)
{
    EXPECT_THAT(findings(k_small + "version: 1\n"), HasSubstr("p.yaml:6:1: duplicate 'version'"));
    EXPECT_THAT(findings("version: 1\npools: &a {}\n"), HasSubstr("anchors"));
    EXPECT_THAT(findings("version: !!int 1\n"), HasSubstr("tags"));
    EXPECT_THAT(findings("version: 1\nx: *a\n"), HasSubstr("anchor is not defined"));
    std::string deep = "version: ";
    deep += std::string(40, '[') + std::string(40, ']');
    EXPECT_THAT(findings(deep), HasSubstr("deeper than 32"));
    EXPECT_THAT(findings(std::string(256 * 1024 + 1, '#')), HasSubstr("larger than 256 KiB"));
    EXPECT_THAT(findings(""), HasSubstr("needs 'version'"));
}

TEST(CheckPolicy, NamesHaveToBeThere)
{
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: [all, al], overflow: nope}")),
                AllOf(HasSubstr("p.yaml:6:28: error: there is no pool 'al' (did you mean 'all'?)"),
                      HasSubstr("there is no pool 'nope'")));
    EXPECT_THAT(findings(k_small + "default_queue: shor\n"),
                HasSubstr("there is no queue 'shor' (did you mean 'short'?)"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, models: v100}")),
                HasSubstr("no pool of queue other has a v100"));
    EXPECT_THAT(findings(k_small + "gpus: {k81: {}}\n"),
                AllOf(HasSubstr("there is no model of GPU 'k80'"), HasSubstr("no pool has a k81")));
    EXPECT_THAT(findings(k_small + "courses: {c: {nodes: n3, start: 2026-11-03T13:00, duration: "
                                   "4h, users: u}}\n"),
                HasSubstr("node n3 is in no pool"));
    EXPECT_THAT(findings(k_small + "tests: [{job: {}, expect: {queue: shrt}}]\n"),
                HasSubstr("there is no queue 'shrt'"));
}

TEST(CheckPolicy, RulesHaveToHaveAnEffect)
{
    EXPECT_THAT(findings(with_queue("{time: 1h, pools: all}")),
                HasSubstr("p.yaml:6: error: queue other is never chosen by default: queue "
                          "short (line 5) accepts every job that it accepts"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, limits: {user: {soft_gpus: 4, gpus: "
                                    "4}}}")),
                HasSubstr("soft_gpus 4 never binds: gpus 4 (line 6) does first"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, limits: {user: {gpus: 2}, job: {gpus: "
                                    "4}}}")),
                HasSubstr("a job may have 4 GPUs, but the user or account only 2"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, default_time: 4h}")),
                HasSubstr("default_time 4 h is beyond the time 3 h"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, wait: {p50: 2h, max: 1h}}")),
                HasSubstr("a wait of 2 h is longer"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, overflow: all}")),
                HasSubstr("pool all is among the pools of queue other already"));
}

TEST(CheckPolicy, WhatNoJobCanReachIsTold)
{
    const std::string pools = "version: 1\npools: {a: {nodes: 'n[1-2]', gpus: 4}}\nqueues:\n";
    EXPECT_THAT(findings(pools + "  q: {time: 1h, pools: a, limits: {job: {gpus: 9}}}\n"),
                HasSubstr("p.yaml:4:48: warning: 9 GPUs never bind: the pools of queue q have 8"));
    EXPECT_THAT(findings(pools + "  q: {time: 1h, pools: a, limits: {job: {gpus: 8}}}\n"),
                IsEmpty());
    EXPECT_THAT(findings(k_small + "fair_share: {half_life: 1m}\n"),
                HasSubstr("warning: a half_life of less than an hour"));
    for (const char* const never : {"0", "0s", "30s"}) { // for Slurm, 0 minutes
        EXPECT_THAT(findings(k_small + "fair_share: {half_life: " + never + "}\n"),
                    HasSubstr(fmt::format("p.yaml:6:25: error: '{}' must be whole minutes, at "
                                          "least one",
                                          never)));
    }
    EXPECT_THAT(findings(k_small + "fair_share: {shares: {root: 3}}\n"),
                HasSubstr("error: account root has no share"));
    const auto weekly = [](const std::string& duration) {
        return findings(k_small + "courses: {c: {nodes: n1, start: 2026-11-03T13:00, duration: " +
                        duration + ", repeat: weekly, users: u}}\n");
    };
    EXPECT_THAT(weekly("169h"), HasSubstr("course c would begin again before it is over"));
    EXPECT_THAT(weekly("168h"), Not(HasSubstr("begin again")));
}

TEST(CheckPolicy, ACourseIsOfUsersOrOfAccounts)
{
    // Slurm would admit only users who are members of all the accounts.
    const std::string course =
        "courses:\n  c: {nodes: n1, start: 2026-11-03T13:00, duration: 4h, users: u";
    EXPECT_THAT(findings(k_small + course + "}\n"), Not(HasSubstr("course c")));
    EXPECT_THAT(
        findings(k_small + course + ", accounts: a}\n"),
        HasSubstr("p.yaml:7:3: error: course c has both users and accounts, and Slurm would "
                  "let in only those users as members of those accounts: name the users, or "
                  "an account that all of them have"));
}

TEST(ReadPolicy, AListOfNamesIsNotEmpty)
{
    const auto empty =
        HasSubstr("error: an empty list: write at least one name, or remove the line");
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: []}")), empty);
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, models: []}")), empty);
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, allow: {users: a, accounts: []}}")),
                empty);
    EXPECT_THAT(findings(k_small + "reserve: {users: u, pools: []}\n"), empty);
    EXPECT_THAT(findings(k_small + "helper: ops\nhelp_desk: {users: [], may: stop}\n"), empty);
    EXPECT_THAT(findings(k_small + "helper: ops\nhelp_desk: {users: u, may: []}\n"),
                HasSubstr("error: may needs 'stop', 'extend' or 'see'"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, overflow: []}")), IsEmpty());
}

TEST(ReadPolicy, ATestIsOfOneUser)
{
    for (const char* const field : {"user", "account"}) {
        EXPECT_THAT(
            findings(k_small + fmt::format("tests:\n  - {{job: {{{}: [a, b], gpus: 1}}, expect: "
                                           "{{queue: short}}}}\n",
                                           field)),
            HasSubstr("error: one line of text is expected"))
            << field;
    }
}

TEST(ReadPolicy, TheGpusOfAPoolAreNumbersOfModels)
{
    const auto of_each_node = [](const std::string& gpus) {
        return findings("version: 1\npools:\n  all: {nodes: n1, gpus: '" + gpus +
                        "'}\nqueues:\n  short: {time: 2h, pools: all}\n");
    };
    for (const char* const gpus : {"4", "k80:4", "k80", "k80:2,p100:2"}) {
        EXPECT_THAT(of_each_node(gpus), IsEmpty());
    }
    for (const char* const gpus : {"-4", "0", "4.5", "k80:-1", "gpu k80:4", "k80:4,k80:2"}) {
        EXPECT_THAT(of_each_node(gpus), StartsWith("p.yaml:3:26: error: '" + std::string(gpus) +
                                                   "' is not a number of GPUs such as 4"));
    }
}

TEST(CheckPolicy, MoreWithEachGpuIsAReasonForASecondQueue)
{
    const auto queues = [](const std::string& first, const std::string& second) {
        return findings("version: 1\npools: {all: {nodes: n1}}\nqueues:\n  a: {time: 2h, pools: "
                        "all, per_gpu: " +
                        first + "}\n  b: {time: 2h, pools: all, per_gpu: " + second + "}\n");
    };
    EXPECT_THAT(queues("{cpus: 4}", "{cpus: 8}"), IsEmpty());
    EXPECT_THAT(queues("{cpus: 8}", "{cpus: 4}"), HasSubstr("queue b is never chosen"));
    EXPECT_THAT(queues("{memory: 4G}", "{}"), IsEmpty());
}

TEST(CheckPolicy, AnAccountHasSmallLetters)
{
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, allow: {accounts: LAB}}")),
                HasSubstr("account LAB: Slurm stores its name in lower case"));
}

TEST(ReadPolicy, AnAllowWithoutNamesOpensNoQueue)
{
    for (const char* const allow : {"{users: [], ask: the head}", "{ask: the head}", ""}) {
        EXPECT_THAT(findings(with_queue(fmt::format("{{time: 3h, pools: all, allow: {}}}", allow))),
                    HasSubstr("error: allow needs 'users' or 'accounts'; without allow, the queue "
                              "is open to all users"))
            << allow;
    }
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, allow: {users: u, ask: the head}}")),
                IsEmpty());
}

TEST(CheckPolicy, AQueueForFewerPeopleMayStandBehindOneForOthers)
{
    const std::string first = "  first: {time: 9h, pools: all, allow: {accounts: [a]}}\n";
    EXPECT_THAT(findings("version: 1\npools: {all: {nodes: n1}}\nqueues:\n" + first +
                         "  second: {time: 2h, pools: all}\n"),
                IsEmpty());
    EXPECT_THAT(findings("version: 1\npools: {all: {nodes: n1}}\nqueues:\n" + first +
                         "  second: {time: 2h, pools: all, allow: {accounts: a}}\n"),
                HasSubstr("queue second is never chosen"));
}

TEST(CheckPolicy, AQueueForLargerJobsMayStandBehindOneForSmallerOnes)
{
    const auto queues = [](const std::string& first, const std::string& second) {
        return findings("version: 1\npools: {all: {nodes: 'n[1-4]', gpus: 4}}\nqueues:\n"
                        "  small: {time: 48h, pools: all, limits: " +
                        first + "}\n  big: {time: 24h, pools: all, limits: " + second + "}\n");
    };
    const auto shadowed = HasSubstr("queue big is never chosen");
    for (const char* const whose : {"job", "user", "account", "all"}) {
        const auto first = fmt::format("{{{}: {{gpus: 2}}}}", whose);
        EXPECT_THAT(queues(first, "{}"), IsEmpty()) << whose;
        EXPECT_THAT(queues(first, "{all: {gpus: 8}}"), IsEmpty()) << whose;
        EXPECT_THAT(queues(first, "{user: {gpus: 1}}"), shadowed) << whose;
        EXPECT_THAT(queues("{}", first), shadowed) << whose;
    }
    EXPECT_THAT(queues("{all: {gpus: 8}}", "{user: {gpus: 4}}"), shadowed);
}

TEST(CheckPolicy, AQueueWithChainsMayStandBehindOneWithout)
{
    const auto queues = [](const std::string& first, const std::string& second) {
        return findings("version: 1\npools: {all: {nodes: 'n[1-4]', gpus: 4}}\nqueues:\n"
                        "  a: {time: 2h, pools: all" +
                        first + "}\n  b: {time: 2h, pools: all" + second + "}\n");
    };
    EXPECT_THAT(queues("", ", chain: {links: 9}"), IsEmpty());
    EXPECT_THAT(queues(", chain: {links: 9}", ", chain: {links: 9}"),
                HasSubstr("queue b is never chosen"));
}

TEST(ReadPolicy, SaysWhatALinkWithoutATicketDoes)
{
    const auto chain = [](const std::string& text) {
        return with_queue("{time: 2h, pools: all, chain: " + text + "}");
    };
    const auto reading = read_policy(chain("{credentials: fail}"), "p.yaml");
    EXPECT_EQ(reading->policy.queue("other")->chain->credentials->value, "fail");
    EXPECT_FALSE(
        read_policy(chain("{links: 2}"), "p.yaml")->policy.queue("other")->chain->credentials);
    EXPECT_THAT(findings(chain("{credentials: wait}")),
                HasSubstr("'wait' is not hold or run or fail"));
}

TEST(ReadPolicy, SaysWhatJobsComeThrough)
{
    const auto reading = read_policy(with_queue("{time: 2h, pools: all, through: gpuq}"), "p.yaml");
    EXPECT_EQ(reading->policy.queue("other")->through->value, "gpuq");
    EXPECT_THAT(findings(with_queue("{time: 2h, pools: all, through: sbatch}")),
                HasSubstr("'sbatch' is not gpuq or sweep"));
    const std::string rules =
        "version: 1\npools: {all: {nodes: n1}}\nqueues:\n"
        "  first: {time: 9h, pools: all, through: gpuq}\n  second: {time: 2h, pools: all}\n";
    EXPECT_THAT(findings(rules), IsEmpty()) << "plain jobs come to the second";
    const Rules made(
        read_policy(rules + "tests:\n- {job: {gpus: 1}, expect: {queue: first}}\n"
                            "- {job: {gpus: 1, through: sbatch}, expect: {queue: second}}\n"
                            "- {job: {gpus: 1, queue: first, through: sbatch}, "
                            "expect: {refused: of gpuq only}}\n",
                    "p.yaml")
            ->policy);
    const CaseReport cases = run_cases(made);
    for (const CaseResult& result : cases.results) {
        EXPECT_TRUE(result.passed) << result.test->name << ": " << result.got;
    }
    const auto through =
        std::find_if(cases.rules.begin(), cases.rules.end(),
                     [](const RuleCount& rule) { return rule.rule == "queue first: through"; });
    ASSERT_NE(through, cases.rules.end());
    EXPECT_EQ(through->tests, 2);
    EXPECT_THAT(findings(rules + "tests: [{job: {through: srun}, expect: {queue: first}}]\n"),
                HasSubstr("'srun' is not gpuq or sweep or sbatch"));
}

TEST(ReadPolicy, AQueueForSweepsTakesAllOfThemAndNothingElse)
{
    const std::string rules =
        "version: 1\npools: {all: {nodes: n1}}\nqueues:\n"
        "  first: {time: 9h, pools: all}\n  tries: {time: 9h, pools: all, through: sweep}\n";
    EXPECT_THAT(findings(rules), IsEmpty()) << "the first queue does not take its jobs";
    const Rules made(
        read_policy(
            rules +
                "tests:\n"
                "- {job: {gpus: 1}, expect: {queue: first}}\n"
                "- {job: {gpus: 1, through: sweep}, expect: {queue: tries}}\n"
                "- {job: {gpus: 1, queue: tries}, "
                "expect: {refused: takes workers of gpuq sweep only (p.yaml:5)}}\n"
                "- {job: {gpus: 1, queue: first, through: sweep}, "
                "expect: {refused: \"no workers of sweeps, which use queue tries (p.yaml:5)\"}}\n"
                "- {job: {gpus: 1, queue: tries, through: sbatch}, "
                "expect: {refused: gpuq sweep only}}\n",
            "p.yaml")
            ->policy);
    const CaseReport cases = run_cases(made);
    EXPECT_EQ(cases.results.size(), 5U);
    for (const CaseResult& result : cases.results) {
        EXPECT_TRUE(result.passed) << result.test->line << ": " << result.got;
    }
    // Without such a queue all of them take workers.
    const Rules without(read_policy("version: 1\npools: {all: {nodes: n1}}\nqueues:\n"
                                    "  first: {time: 9h, pools: all, through: gpuq}\ntests:\n"
                                    "- {job: {gpus: 1, through: sweep}, expect: {queue: first}}\n",
                                    "p.yaml")
                            ->policy);
    EXPECT_TRUE(run_cases(without).results.front().passed);
}

/// The text for slurm.conf, or the findings.
std::string made_of(const std::string& text)
{
    const auto reading = read_policy(text, "p.yaml");
    if (!reading || has_errors(reading->findings)) {
        return findings(text);
    }
    return slurm_conf_of(reading->policy);
}

TEST(ReadPolicy, TheSectionOfSweepsIsAQueueThatGivesWay)
{
    const std::string shared = "version: 1\npools:\n  a: {nodes: 'n[1-3]', gpus: 4}\n"
                               "  b: {nodes: n4, gpus: 2, owner: short, lend: {grace: 1m}}\n"
                               "queues:\n  short: {time: 2h, pools: [a, b]}\n"
                               "  long: {time: 9h, pools: [a, b]}\n";
    const Policy policy =
        read_policy(shared + "sweeps: {max_workers: 3, max_share: 50%, grace: 20s}\n", "p.yaml")
            ->policy;
    const Queue* const sweeps = policy.sweep_queue();
    ASSERT_NE(sweeps, nullptr);
    EXPECT_EQ(sweeps->max_time.value, std::chrono::hours{9});
    EXPECT_EQ(sweeps->limits.user.jobs->value, 3);
    EXPECT_EQ(sweeps->limits.all.gpus->value, 7) << "of 14";
    const std::string conf = slurm_conf_of(policy);
    const auto line_of = [&](const std::string& name) {
        const std::size_t at = conf.find("PartitionName=" + name + " ");
        return at == std::string::npos ? conf : conf.substr(at, conf.find('\n', at) - at);
    };
    // In pool a, sweeps alone are guests; in pool b, as the others.
    EXPECT_THAT(line_of("sweeps"), AllOf(HasSubstr("PreemptMode=REQUEUE"),
                                         HasSubstr("GraceTime=20"), HasSubstr("PriorityTier=30")));
    EXPECT_THAT(line_of("short"),
                AllOf(HasSubstr("PreemptMode=OFF"), HasSubstr("PriorityTier=40")));
    EXPECT_THAT(line_of("long"), AllOf(HasSubstr("PreemptMode=OFF"), HasSubstr("PriorityTier=40")));
    EXPECT_THAT(line_of("sweeps-b"),
                AllOf(HasSubstr("PreemptMode=REQUEUE"), HasSubstr("GraceTime=60")));
    EXPECT_THAT(line_of("long-b"), HasSubstr("PreemptMode=REQUEUE"));
    // The section may stand before those that it concerns.
    EXPECT_EQ(made_of("version: 1\nsweeps: {}\n" + shared.substr(11)),
              made_of(shared + "sweeps: {}\n"));
    const Rules rules(
        read_policy(shared + "sweeps: {max_workers: 3}\ntests:\n"
                             "- {job: {gpus: 1, through: sweep}, expect: {queue: sweeps}}\n"
                             "- {job: {gpus: 1}, expect: {queue: short}}\n"
                             "- {job: {gpus: 1, queue: sweeps}, "
                             "expect: {refused: workers of gpuq sweep only (p.yaml:8)}}\n",
                    "p.yaml")
            ->policy);
    for (const CaseResult& result : run_cases(rules).results) {
        EXPECT_TRUE(result.passed) << result.test->line << ": " << result.got;
    }
}

TEST(ReadPolicy, TheSectionOfSweepsIsRefusedWithItsPosition)
{
    for (const auto& [text, message] : std::map<std::string, std::string>{
             {"{max_share: 50}", "p.yaml:6:21: error: '50' is not a share in percent"},
             {"{max_share: 0%}", "p.yaml:6:21: error: '0' is not a whole number from 1 to 100"},
             {"{max_share: 101%}", "from 1 to 100"},
             {"{max_share: [50%]}", "is not a share"},
             {"{max_workers: 0}", "p.yaml:6:23: error"},
             {"{workers: 3}", "unknown name 'workers' in sweeps"},
             {"{pools: nowhere}", "nowhere"},
             {"{time: 2}", "is not a length of time"}}) {
        EXPECT_THAT(findings(k_small + "sweeps: " + text + "\n"), HasSubstr(message)) << text;
    }
    EXPECT_THAT(findings(k_small + "  sweeps: {time: 1h, pools: all}\nsweeps: {}\n"),
                HasSubstr("queue sweeps (line 6) and `sweeps` would both be for sweeps"));
    EXPECT_THAT(findings("version: 1\npools: {all: {nodes: ALL, gpus: 4}}\n"
                         "queues: {short: {time: 2h, pools: all}}\nsweeps: {max_share: 50%}\n"),
                HasSubstr("a share of pool all needs its nodes, by their names"));
    EXPECT_THAT(findings("version: 1\npools: {all: {nodes: n1}}\n"
                         "queues: {short: {time: 2h, pools: all}}\nsweeps: {max_share: 50%}\n"),
                HasSubstr("a share of pool all needs its gpus"));
}

TEST(ReadPolicy, AProbeIsAPath)
{
    const auto with_probe = [](const std::string& probe) {
        return findings("version: 1\npools: {a: {nodes: n1, owner: q, lend: {probe: " + probe +
                        "}}}\nqueues:\n  p: {time: 1h, pools: a}\n  q: {time: 2h, pools: a}\n");
    };
    EXPECT_THAT(with_probe("/sbin/is-idle"), IsEmpty());
    EXPECT_THAT(with_probe("[/sbin/is-idle, -x]"), IsEmpty());
    EXPECT_THAT(with_probe("is-idle"), HasSubstr("p.yaml:2:48: error: a probe is the path"));
    EXPECT_THAT(with_probe("[]"), HasSubstr("a probe is the path"));
}

TEST(ReadPolicy, PublishesNoNameThatItDoesNotList)
{
    const auto published = [](const std::string& text) {
        return read_policy(k_small + "publish: " + text + "\n", "p.yaml")->policy.publish;
    };
    EXPECT_EQ(published("{}").use, Publish::Use::by_model);
    EXPECT_EQ(published("{}").least_users.value, 5);
    EXPECT_EQ(published("{names: [courses, accounts]}").use, Publish::Use::by_account);
    EXPECT_EQ(published("{names: labs}").use, Publish::Use::by_lab);
    EXPECT_FALSE(published("{names: labs}").courses);
    EXPECT_THAT(findings(k_small + "publish: {names: [labs, accounts]}\n"),
                HasSubstr("p.yaml:6:25: error: labs and accounts together"));
    EXPECT_THAT(findings(k_small + "publish: {names: users}\n"),
                HasSubstr("p.yaml:6:18: error: 'users' is not labs or accounts or courses"));
    EXPECT_THAT(findings(k_small + "publish: {least_users: 1}\n"),
                HasSubstr("p.yaml:6:24: error: "));
}

TEST(CheckPolicy, ANodeIsInOnePool)
{
    EXPECT_THAT(findings("version: 1\npools: {a: {nodes: 'n[1-3]'}, b: {nodes: n2}}\n"
                         "queues: {q: {time: 1h, pools: [a, b]}}\n"),
                HasSubstr("node n2 is in pool a as well (line 2)"));
    EXPECT_THAT(findings("version: 1\npools: {a: {nodes: ALL}, b: {nodes: n2}}\n"
                         "queues: {q: {time: 1h, pools: [a, b]}}\n"),
                HasSubstr("ALL is possible for the only pool"));
}

TEST(CheckPolicy, SlurmHasToTakeTheNamesOfQueues)
{
    for (const char* const name : {"Long", "default", "DEFAULT"}) {
        EXPECT_THAT(findings(fmt::format("version: 1\npools: {{a: {{nodes: n1}}}}\n"
                                         "queues: {{{}: {{time: 1h, pools: a}}}}\n",
                                         name)),
                    HasSubstr(fmt::format("queue {}: Slurm ", name)));
    }
}

TEST(ReadPolicy, ACourseBeginsOnADayThatThereIs)
{
    const auto on = [](const std::string& day) {
        return findings(k_small + "courses: {c: {nodes: n1, start: " + day +
                        "T13:00, duration: 4h, users: u}}\n");
    };
    EXPECT_THAT(on("2028-02-29"), Not(HasSubstr("local time")));
    EXPECT_THAT(on("2026-02-29"), HasSubstr("'2026-02-29T13:00' is not a local time"));
    EXPECT_THAT(on("2026-04-31"), HasSubstr("is not a local time"));
}

TEST(CheckPolicy, SharesAreOfPoolsWithModelsAndOfQueuesThatLimitThem)
{
    const auto shared = [](const std::string& pool, const std::string& limits) {
        return findings("version: 1\npools:\n  all: {nodes: n1, " + pool +
                        "}\nqueues:\n  q: {time: 2h, pools: all, limits: {" + limits + "}}\n");
    };
    const std::string four = "gpus: 'a10:2', shares: {per_gpu: 4}";
    EXPECT_EQ(shared(four, "user: {shares: 1}"), "");
    EXPECT_EQ(shared(four, "job: {gpus: 0, shares: 2}"), "");
    EXPECT_THAT(shared("gpus: 'a10:2'", "user: {shares: 1}"),
                HasSubstr("p.yaml:5:53: error: no pool of queue q has shares"));
    EXPECT_THAT(shared("gpus: 2, shares: {per_gpu: 4}", "user: {shares: 1}"),
                HasSubstr("p.yaml:3: error: pool all has shares, and must specify its GPUs with"));
    EXPECT_THAT(shared("shares: {per_gpu: 4}", "user: {shares: 1}"), HasSubstr("must specify"));
    EXPECT_THAT(shared("gpus: 'a10:2', shares: {per_gpu: 1}", "user: {shares: 1}"),
                HasSubstr("'1' is not a whole number from 2 to 64"));
    EXPECT_THAT(shared("gpus: 'a10:2', shares: {}", "user: {shares: 1}"),
                HasSubstr("shares needs 'per_gpu'"));
    EXPECT_THAT(shared("gpus: 'a10:2', shares: 4", "user: {shares: 1}"),
                HasSubstr("shares must be `name: value` lines"));
    EXPECT_THAT(shared(four, "job: {shares: 5}"),
                HasSubstr("warning: 5 shares never bind: a GPU of queue q has 4"));
}

TEST(SlurmObjects, TimesOfADayAreWrittenAsSlurmPrintsThem)
{
    const auto exempt_time = [](const std::string& min_run) {
        const auto reading = read_policy("version: 1\n"
                                         "pools: {a: {nodes: n1, lend: {min_run: " +
                                             min_run +
                                             "}}}\n"
                                             "queues: {q: {time: 96h, pools: a}}\n",
                                         "p.yaml");
        const std::vector<Object> objects =
            reading ? objects_of(reading->policy) : std::vector<Object>{};
        const auto found = std::find_if(objects.begin(), objects.end(), [](const Object& object) {
            return object.name == "PreemptExemptTime";
        });
        return found == objects.end() ? "" : found->fields.at("value");
    };
    EXPECT_EQ(exempt_time("0"), "00:00:00");
    EXPECT_EQ(exempt_time("90s"), "00:01:30");
    EXPECT_EQ(exempt_time("24h"), "1-00:00:00");
    EXPECT_EQ(exempt_time("49h"), "2-01:00:00");
}

TEST(SlurmObjects, SharesAreLimitedByTheQosAndCountInFairShare)
{
    const Policy policy = read_policy(shipped("teaching.yaml"), "teaching.yaml")->policy;
    std::map<std::string, std::map<std::string, std::string>> fields;
    for (const Object& object : objects_of(policy)) {
        if (object.kind != Object::Kind::access) { // named like its QOS
            fields[object.name] = object.fields;
        }
    }
    EXPECT_EQ(fields["gpuq_lessons"].at("MaxTRESPU"), "gres/shard=1");
    EXPECT_FALSE(fields["gpuq_lessons"].contains("MaxTRES")); // Slurm counts a share as no GPU
    EXPECT_EQ(fields["gpuq_exercises"].at("MaxTRESPU"), "gres/gpu=1");
    EXPECT_EQ(fields["lessons"].at("TRESBillingWeights"), "GRES/gpu:a10=1,GRES/shard=0.25");
    EXPECT_EQ(fields["exercises"].at("TRESBillingWeights"), "GRES/gpu:a10=1");
    EXPECT_EQ(fields["AccountingStorageTRES"].at("contains"), "gres/gpu,gres/gpu:a10,gres/shard");
    EXPECT_EQ(fields["GresTypes"].at("contains"), "shard");
}

TEST(CheckPolicy, CoursesShareNoNodeAtOneTime)
{
    const auto both = [](const std::string& one, const std::string& other) {
        return findings(k_small + "courses:\n  a: {nodes: 'n[1-2]', users: u, start: " + one +
                        "}\n  b: {nodes: n1, users: v, start: " + other + "}\n");
    };
    // This date is a Tuesday.
    EXPECT_THAT(both("2026-11-03T13:00, duration: 4h", "2026-11-03T16:00, duration: 1h"),
                HasSubstr("p.yaml:8:35: error: course b has node n1 on 2026-11-03T16:00, and so "
                          "has course a (line 7): Slurm gives a node to one at a time"));
    const auto none = Not(HasSubstr("has node"));
    EXPECT_THAT(both("2026-11-03T13:00, duration: 3h", "2026-11-03T16:00, duration: 1h"), none);
    EXPECT_THAT(
        both("2026-11-03T13:00, duration: 3h, repeat: weekly", "2026-11-24T15:00, duration: 1h"),
        HasSubstr("2026-11-24T15:00"));
    EXPECT_THAT(
        both("2026-11-03T13:00, duration: 3h, repeat: weekly", "2026-10-27T15:00, duration: 1h"),
        none)
        << "before it ever is";
    EXPECT_THAT(both("2026-11-03T13:00, duration: 3h, repeat: weekly",
                     "2026-11-05T13:00, duration: 3h, repeat: weekly"),
                none);
    EXPECT_THAT(both("2026-11-07T13:00, duration: 3h, repeat: weekly",
                     "2026-11-03T13:00, duration: 3h, repeat: weekdays"),
                none)
        << "Saturdays";
    EXPECT_THAT(both("2026-11-07T13:00, duration: 3h, repeat: weekly",
                     "2026-11-03T15:00, duration: 3h, repeat: daily"),
                HasSubstr("2026-11-07T15:00"));
    EXPECT_THAT(
        both("2026-11-06T22:00, duration: 3h, repeat: weekdays", "2027-05-08T00:00, duration: 1h"),
        HasSubstr("2027-05-08T00:00"))
        << "a night that began on a Friday";
    EXPECT_THAT(findings(k_small + "courses:\n"
                                   "  a: {nodes: n1, users: u, start: 2026-11-03T13:00, duration: "
                                   "4h}\n"
                                   "  b: {nodes: n2, users: u, start: 2026-11-03T13:00, duration: "
                                   "4h}\n"),
                none);
}

TEST(CheckPolicy, TwoQueuesMakeNoPartitionOfOneName)
{
    EXPECT_THAT(findings("version: 1\npools: {a: {nodes: n1}, b: {nodes: n2}}\n"
                         "queues:\n  q-b: {time: 1h, pools: a}\n  q: {time: 2h, pools: [a, b]}\n"),
                HasSubstr("queues q-b and q would both make a partition q-b"));
    const auto soft = [](const std::string& second) {
        return findings("version: 1\npools: {a: {nodes: n1}, " + second +
                        ": {nodes: n2}}\n"
                        "queues:\n  q: {time: 2h, pools: [a, " +
                        second + "], limits: {user: {soft_gpus: 2}}}\n");
    };
    EXPECT_THAT(soft("more"),
                HasSubstr("p.yaml:4: error: queue q would make two partitions q-more, for its "
                          "pools more and a: rename a pool"));
    EXPECT_THAT(soft("b"), IsEmpty());
}

TEST(CheckPolicy, TwoQueuesMakeNoQosOfOneName)
{
    const auto queues = [](const std::string& limits) {
        return findings(
            "version: 1\npools: {a: {nodes: n1}}\nqueues:\n"
            "  q_soft: {time: 1h, pools: a}\n  q: {time: 2h, pools: a, limits: {user: " +
            limits + "}}\n");
    };
    EXPECT_THAT(queues("{soft_gpus: 2}"),
                HasSubstr("p.yaml:5: error: queues q_soft and q would both make a QOS "
                          "gpuq_q_soft: rename one"));
    EXPECT_THAT(queues("{gpus: 2}"), IsEmpty());
}

TEST(ReadPolicy, TakesBackIdleGpus)
{
    const auto idle_of = [](const std::string& text) {
        const auto reading = read_policy(with_queue(text), "p.yaml");
        return *reading->policy.queue("other")->idle;
    };
    const IdleRule all = idle_of("{time: 2h, pools: all, idle: {after: 30m, warn: 3m, start: 0s, "
                                 "max_per_hour: 2}}");
    EXPECT_EQ(all.after.value, std::chrono::minutes(30));
    EXPECT_EQ(all.warn.value, std::chrono::minutes(3));
    EXPECT_EQ(all.start.value, seconds(0));
    EXPECT_EQ(all.max_per_hour.value, 2);
    const IdleRule least = idle_of("{time: 2h, pools: all, idle: {after: 30m}}");
    EXPECT_EQ(least.warn.value, std::chrono::minutes(5));
    EXPECT_EQ(least.start.value, std::chrono::minutes(10));
    EXPECT_EQ(least.max_per_hour.value, 4);
    EXPECT_EQ(idle_of("{time: 2h, pools: all, idle: {after: 40s}}").warn.value, seconds(20));
}

TEST(ReadPolicy, LimitsHowLongANotebookMayBeUnused)
{
    const auto policy = [](const std::string& rule) {
        return read_policy(with_queue("{time: 3h, pools: all" + rule + "}"), "p.yaml")->policy;
    };
    const Policy ruled = policy(", notebook_idle: 20m");
    EXPECT_EQ(ruled.queue("other")->notebook_idle->value, std::chrono::minutes(20));
    EXPECT_FALSE(policy("").queue("other")->notebook_idle);
    EXPECT_EQ(slurm_conf_of(ruled), slurm_conf_of(policy("")));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, notebook_idle: 59s}")),
                HasSubstr("error: a notebook may be unused for at least 60 s"));
    EXPECT_THAT(findings(with_queue("{time: 3h, pools: all, notebook_idle: 60s}")), IsEmpty());
}

TEST(ReadPolicy, IdleGpusAreNoBusinessOfSlurms)
{
    const auto with = [](const std::string& idle) {
        return read_policy(with_queue("{time: 3h, pools: all" + idle + "}"), "p.yaml")->policy;
    };
    const Policy ruled = with(", idle: {after: 30m}");
    EXPECT_EQ(slurm_conf_of(ruled), slurm_conf_of(with("")));
    EXPECT_EQ(objects_of(ruled), objects_of(with("")));
    EXPECT_EQ(lua_version(ruled), lua_version(with("")));
}

TEST(CheckPolicy, IdleGpusAreTakenBackNeitherTooSoonNorUnwarned)
{
    const auto found = [](const std::string& idle) {
        return findings(with_queue("{time: 3h, pools: all, idle: " + idle + "}"));
    };
    EXPECT_THAT(found("{after: 30m}"), IsEmpty());
    EXPECT_THAT(found("{after: 29s}"), StartsWith("p.yaml:6: error: "));
    EXPECT_THAT(found("{after: 5m}"), HasSubstr("warning: after less than 10 min"));
    EXPECT_THAT(found("{after: 3h}"), HasSubstr("warning: no run of queue other lasts that long"));
    EXPECT_THAT(found("{after: 30m, warn: 30m}"), HasSubstr("error: a warning comes"));
    EXPECT_THAT(found("{after: 30m, warn: 5s}"), HasSubstr("error: a warning comes"));
    EXPECT_THAT(found("{after: 30m, max_per_hour: 0}"), HasSubstr("error"));
    EXPECT_THAT(found("{after: 1800}"), HasSubstr("error"));
    EXPECT_THAT(found("{warn: 5m}"), HasSubstr("after"));
    EXPECT_THAT(found("{after: 30m, for: 5m}"), HasSubstr("error"));
}

TEST(CheckPolicy, AnOwnerUsesItsPool)
{
    EXPECT_THAT(findings("version: 1\npools: {a: {nodes: n1, owner: p}, b: {nodes: n2}}\n"
                         "queues:\n  q: {time: 2h, pools: a}\n  p: {time: 3h, pools: b}\n"),
                HasSubstr("queue p owns pool a and does not use it"));
}

std::string findings_text(const std::string& text, SlurmRelease slurm)
{
    std::string lines;
    const Policy policy = read_policy(text, "p.yaml")->policy;
    for (const Finding& finding : consequences(policy, slurm, "2026-11-03T17:00")) {
        lines += finding.text + "\n";
    }
    return lines;
}

TEST(Consequences, TheWaitBoundIsForSoManyPeople)
{
    const std::string text = findings_text(shipped("criann.yaml"), {22, 5});
    EXPECT_THAT(text, HasSubstr("queue calibration: a wait of 2 h at worst holds for at most 3 "
                                "users at once (4 GPUs, 2 for each); with lent nodes (16 GPUs) "
                                "for 9"));
    EXPECT_THAT(text,
                HasSubstr("pool visu is back with its owner at most 7 min after they ask (grace "
                          "5 min, up to 30 s until Slurm checks, KillWait 30 s), not counting "
                          "the 15 min a guest is protected"));
    EXPECT_THAT(text, HasSubstr("Slurm has one min_run for all pools: guests of pool visu are also "
                                "protected for 15 min"));
    EXPECT_THAT(text, HasSubstr("gets whole nodes: GPU reservations need Slurm 23.11"));
}

TEST(Consequences, SharesAreSimulated)
{
    EXPECT_THAT(findings_text(shipped("teaching.yaml"), {22, 5}), Not(HasSubstr("share")));
}

TEST(Consequences, ACourseThatIsOverIsTold)
{
    const auto lasting = [](const std::string& duration) {
        return findings_text(k_small +
                                 "courses: {c: {nodes: n1, users: u, start: 2026-11-03T13:00, "
                                 "duration: " +
                                 duration + "}}\n",
                             {24, 5});
    };
    EXPECT_THAT(lasting("4h"),
                HasSubstr("course c was over at 2026-11-03T17:00: no one gets its nodes"));
    EXPECT_THAT(lasting("241m"), Not(HasSubstr("was over")));
    EXPECT_THAT(lasting("4h, repeat: daily"), Not(HasSubstr("was over")));
}

TEST(Consequences, DependOnTheRelease)
{
    const std::string text = with_queue("{time: 3h, pools: all, limits: {user: {gpu_hours_ahead: "
                                        "8}}}");
    EXPECT_THAT(findings_text(text, {22, 5}),
                HasSubstr("Slurm 22.05 stores gpu_hours_ahead and does not"));
    EXPECT_THAT(findings_text(text, {24, 5}), IsEmpty());
    EXPECT_THAT(findings_text(shipped("criann.yaml"), {23, 11}), Not(HasSubstr("whole nodes")));
}

TEST(Site, APolicyMayOnlyDescribeWhatTheSiteHas)
{
    const std::string text = "version: 1\n"
                             "site:\n"
                             "  settings: {PreemptType: preempt/qos}\n"
                             "  partitions: {\"a: 'b'\\n\": {Nodes: \"n[0-1]\", Hidden: \"YES\"}}\n"
                             "  shares: {ada@lab: \"7\"}\n"
                             "  qos: {normal: }\n";
    const auto reading = read_policy(text, "p.yaml");
    ASSERT_TRUE(reading) << reading.error().text;
    EXPECT_THAT(reading->findings, IsEmpty());
    using Kind = SlurmObject::Kind;
    ASSERT_TRUE(reading->policy.site);
    EXPECT_EQ(reading->policy.site->objects,
              (std::vector<SlurmObject>{
                  {Kind::setting, "PreemptType", {{"value", "preempt/qos"}}, 3},
                  {Kind::partition, "a: 'b'\n", {{"Hidden", "YES"}, {"Nodes", "n[0-1]"}}, 4},
                  {Kind::share, "ada@lab", {{"fairshare", "7"}}, 5},
                  {Kind::qos, "normal", {}, 6}}));
    EXPECT_EQ(reading->policy.site->kinds,
              (std::set<Kind>{Kind::setting, Kind::partition, Kind::share, Kind::qos}));
    EXPECT_THAT(objects_of(reading->policy), IsEmpty());
}

std::string errors_of(const std::string& text)
{
    const auto reading = read_policy(text, "p.yaml");
    std::string list;
    for (const Finding& finding : reading ? reading->findings : std::vector<Finding>{}) {
        list += to_line(finding, "p.yaml") + "\n";
    }
    return reading ? list : reading.error().text;
}

TEST(Site, ItsErrorsAreReported)
{
    EXPECT_THAT(errors_of("version: 1\nsite: {partition: {}}\n"), HasSubstr("partitions"));
    EXPECT_THAT(errors_of("version: 1\nsite: {partitions: [a]}\n"), HasSubstr("NAME: ..."));
    EXPECT_THAT(errors_of("version: 1\nsite: {partitions: {a: [b]}}\n"), HasSubstr("FIELD: VALUE"));
    EXPECT_THAT(errors_of("version: 1\nsite: {partitions: {a: {Nodes: [b]}}}\n"),
                HasSubstr("quote it"));
    EXPECT_THAT(errors_of("version: 1\nsite: {shares: {a: {b: 1}}}\n"), HasSubstr("quote it"));
    EXPECT_THAT(errors_of("version: 1\nsite: {}\ncourses: {c: {nodes: n1, start: "
                          "2026-11-03T13:00, duration: 1h, users: a}}\n"),
                HasSubstr("courses need a queue"));
    EXPECT_THAT(errors_of("version: 1\nsite: {partitions: {gpu: {}}}\npools: {all: {nodes: "
                          "ALL}}\nqueues: {gpu: {time: 1h, pools: all}}\n"),
                HasSubstr("partition gpu belongs to queue gpu (line 4)"));
}

/// For any content, reading ends and either succeeds or reports the position of the error.
TEST(ReadPolicy, SurvivesEveryMutation)
{
    std::mt19937 random(5);
    const std::string seed = shipped("criann.yaml");
    for (int round = 0; round < 400; ++round) {
        std::string text = seed;
        for (int change = 0; change < 3; ++change) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
            case 0:
                text[at] = static_cast<char>(random() % 256);
                break;
            case 1:
                text.erase(at, random() % 40);
                break;
            case 2:
                text.insert(at, text.substr(random() % text.size(), random() % 60));
                break;
            default:
                text.insert(at, 1, "[]{}:,-#'\"\n &*!|>%"[random() % 18]);
            }
        }
        const auto reading = read_policy(text, "p.yaml");
        if (!reading) {
            EXPECT_THAT(reading.error().text, StartsWith("p.yaml"));
        } else if (!has_errors(reading->findings)) {
            (void)consequences(reading->policy, {22, 5}, "2026-11-03T17:00");
        }
    }
}

} // namespace
} // namespace gpuq::policy
