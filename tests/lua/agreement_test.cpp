// SPDX-License-Identifier: GPL-2.0-or-later
#include "lua/submit_script.h"
#include "policy/cases.h"
#include "policy/decide.h"
#include "policy/lua.h"
#include "policy/read.h"
#include "random_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

/// The generated job_submit.lua and decide() must give the same answer for every job.
namespace gpuq::policy {
namespace {

using Outcome = Verdict::Outcome;
using Strings = std::vector<std::string>;
using Jobs = RandomJobs;

/// Jobs per policy: more in contrib/soak.sh.
int rounds()
{
    const char* soak = std::getenv("GPUQ_SOAK");
    return soak != nullptr ? 250'000 : 5'000;
}

/// `NAME`, or `NAME through`: then every second queue accepts only runs of gpuq, or `NAME sweep`:
/// only workers of sweeps.
Policy shipped(const std::string& messages)
{
    const std::string name = messages.substr(0, messages.find(' '));
    std::ifstream file(std::string(GPUQ_POLICIES_DIR) + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    Policy policy = read_policy(text.str(), name)->policy;
    const bool is_sweep = messages.ends_with(" sweep");
    if (name != messages) {
        for (std::size_t i = 1; i < policy.queues.size(); i += 2) {
            policy.queues[i].through = Rule<std::string>{is_sweep ? "sweep" : "gpuq", 1, 1};
        }
    }
    return policy;
}

std::string shown(const ScriptFields& fields)
{
    std::string text;
    for (const auto& [name, value] : fields) {
        const auto* messages = std::get_if<std::string>(&value);
        text += fmt::format(" {}={}", name,
                            messages != nullptr ? *messages
                                                : std::to_string(std::get<std::uint32_t>(value)));
    }
    return text;
}

/// As the script reads them.
Strings shown(Strings on, const std::vector<Reserved>& reserved)
{
    for (const Reserved& one : reserved) {
        on.push_back(fmt::format("{}|{}|{}", one.name, one.partition, fmt::join(one.users, ",")));
    }
    return on;
}

/// The job after a verdict was applied.
ScriptFields after(const Submission& job, const Verdict& verdict)
{
    ScriptFields fields = fields_of(job);
    if (verdict.outcome != Outcome::accept) {
        return fields;
    }
    if (!verdict.partitions.empty()) {
        fields["partition"] = fmt::format("{}", fmt::join(verdict.partitions, ","));
    }
    if (!verdict.qos.empty()) {
        fields["qos"] = verdict.qos;
    }
    if (verdict.time_limit) {
        fields["time_limit"] = *verdict.time_limit;
    }
    if (verdict.memory_mib) {
        fields["min_mem_per_node"] = *verdict.memory_mib;
    }
    if (!verdict.reservation.empty()) {
        fields["reservation"] = verdict.reservation;
    }
    return fields;
}

Strings prefixed(const Strings& messages)
{
    Strings lines;
    for (const std::string& word : messages) {
        lines.push_back("gpuq: " + word);
    }
    return lines;
}

class Agreement : public testing::TestWithParam<const char*> {};

TEST_P(Agreement, OnEverySubmission)
{
    const Rules rules(shipped(GetParam()));
    const auto script = *lua::load_submit_script(job_submit_lua(rules.policy()));
    Jobs jobs(rules, 11);
    int accepted = 0;
    int refused = 0;
    for (int round = 0; round < rounds(); ++round) {
        const Submission job = jobs.job();
        const Strings on = jobs.courses_on();
        const std::vector<Reserved> reserved = jobs.reserved();
        const Verdict verdict = decide(rules, job, on, reserved);
        const auto answer = script->submit(fields_of(job), shown(on, reserved));
        ASSERT_TRUE(answer) << answer.error().text << shown(fields_of(job));
        ASSERT_EQ(answer->status == 0, verdict.outcome != Outcome::refuse)
            << shown(fields_of(job)) << fmt::format(": {}", fmt::join(answer->messages, "; "));
        ASSERT_EQ(answer->fields, after(job, verdict)) << shown(answer->fields);
        ASSERT_EQ(answer->messages, prefixed(verdict.messages)) << shown(fields_of(job));
        accepted += verdict.outcome == Outcome::accept ? 1 : 0;
        refused += verdict.outcome == Outcome::refuse ? 1 : 0;
    }
    // The jobs must reach both sides of the rules; otherwise the comparison means nothing.
    EXPECT_GT(accepted, rounds() / 20);
    EXPECT_GT(refused, rounds() / 20);
}

TEST_P(Agreement, OnEveryChange)
{
    const Rules rules(shipped(GetParam()));
    const auto script = *lua::load_submit_script(job_submit_lua(rules.policy()));
    Jobs jobs(rules, 12);
    int compared = 0;
    for (int round = 0; round < rounds(); ++round) {
        const Submission first = jobs.job();
        const Verdict start = decide(rules, first, {});
        if (start.outcome != Outcome::accept && !jobs.one_in(5)) {
            continue;
        }
        ScriptFields before = after(first, start);
        ScriptFields change = fields_of(jobs.job());
        // No modification makes a job part of another job.
        for (const char* name :
             {"user_name", "reservation", "comment", "het_job_id", "het_job_offset"}) {
            change.erase(name);
        }
        while (change.size() > 2) {
            change.erase(change.begin());
        }
        Submission was = first;
        Submission is = first;
        const auto text = [](const ScriptFields& fields, const char* name) {
            const auto found = fields.find(name);
            return found == fields.end() ? std::nullopt
                                         : std::optional(std::get<std::string>(found->second));
        };
        const auto apply = [&](const ScriptFields& fields, Submission& job) {
            const auto into_text = [&](const char* name, std::string& value) {
                value = text(fields, name).value_or(value);
            };
            const auto into = [&](const char* name, std::optional<std::uint32_t>& value) {
                const auto found = fields.find(name);
                if (found != fields.end()) {
                    value = std::get<std::uint32_t>(found->second);
                }
            };
            job.partition = text(fields, "partition") ? text(fields, "partition") : job.partition;
            job.qos = text(fields, "qos") ? text(fields, "qos") : job.qos;
            into_text("account", job.account);
            into("time_limit", job.time_limit);
            into("min_nodes", job.min_nodes);
            into("max_nodes", job.max_nodes);
            into("num_tasks", job.num_tasks);
            into("ntasks_per_node", job.ntasks_per_node);
            into("sockets_per_node", job.sockets_per_node);
            into("ntasks_per_tres", job.ntasks_per_tres);
            into("ntasks_per_core", job.ntasks_per_core);
            into("threads_per_core", job.threads_per_core);
            into("core_spec", job.core_spec);
            into("thread_spec", job.thread_spec);
            into_text("tres_per_job", job.tres.per_job);
            into_text("tres_per_node", job.tres.per_node);
            into_text("tres_per_task", job.tres.per_task);
            into_text("tres_per_socket", job.tres.per_socket);
            into("min_cpus", job.min_cpus);
            into("cpus_per_task", job.cpus_per_task);
            into("pn_min_cpus", job.pn_min_cpus);
            into("min_mem_per_node", job.min_mem_per_node);
            into("min_mem_per_cpu", job.min_mem_per_cpu);
            into_text("cpus_per_tres", job.tres.cpus);
            into_text("mem_per_tres", job.tres.mem);
            into("shared", job.shared);
        };
        apply(before, was);
        for (auto* memory : {&was.min_mem_per_node, &was.min_mem_per_cpu}) {
            if (*memory == 0U) { // 0 means "not set" in Slurm's record
                memory->reset();
            }
        }
        is = was;
        apply(change, is);
        // Slurm keeps only one of the two.
        if (change.contains("min_mem_per_node") != change.contains("min_mem_per_cpu")) {
            (change.contains("min_mem_per_node") ? is.min_mem_per_cpu : is.min_mem_per_node)
                .reset();
        }
        const Verdict verdict = change.empty()
                                    ? Verdict{}
                                    : decide_change(rules, was, is, change.count("partition") == 1);
        const auto answer = script->modify(before, change, 1000);
        ASSERT_TRUE(answer) << answer.error().text;
        ASSERT_EQ(answer->status == 0, verdict.outcome != Outcome::refuse)
            << shown(before) << " ->" << shown(change)
            << fmt::format(": {}", fmt::join(answer->messages, "; "));
        ASSERT_EQ(answer->messages, prefixed(verdict.messages)) << shown(before) << shown(change);
        const auto lists = answer->fields.find("partition");
        if (verdict.outcome == Outcome::accept && !verdict.partitions.empty()) {
            ASSERT_EQ(std::get<std::string>(lists->second),
                      fmt::format("{}", fmt::join(verdict.partitions, ",")));
            ASSERT_EQ(std::get<std::string>(answer->fields.at("qos")), verdict.qos);
        }
        ++compared;
    }
    EXPECT_GT(compared, rounds() / 20);
}

TEST_P(Agreement, ThePolicysOwnTestsHoldInLua)
{
    const Policy policy = shipped(GetParam());
    const Rules rules(policy);
    const auto script = *lua::load_submit_script(job_submit_lua(policy));
    for (const Case& test : policy.tests) {
        if (std::string(GetParam()).ends_with(" sweep")) {
            break; // they are those of the policy as it is shipped
        }
        const Strings on = test.course ? Strings{*test.course} : Strings{};
        const auto answer = script->submit(fields_of(submission_of(test)), on);
        EXPECT_EQ(answer->status == 0, test.in.has_value()) << test.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Policies, Agreement,
                         testing::Values("minimal.yaml", "workstation.yaml", "criann.yaml",
                                         "centre.yaml", "teaching.yaml", "criann.yaml through",
                                         "centre.yaml sweep"),
                         [](const auto& chosen) {
                             const std::string messages = chosen.param;
                             const bool plain = messages.find(' ') == std::string::npos;
                             return messages.substr(0, messages.find('.')) +
                                    (plain ? "" : "_" + messages.substr(messages.find(' ') + 1));
                         });

TEST(GeneratedLua, RootMayChangeWhatItLikes)
{
    const Policy policy = shipped("criann.yaml");
    const auto script = *lua::load_submit_script(job_submit_lua(policy));
    const ScriptFields job{{"partition", "calibration"}, {"time_limit", 60U}, {"user_name", "a"}};
    EXPECT_EQ(script->modify(job, {{"time_limit", 6000U}}, 0)->status, 0);
    EXPECT_NE(script->modify(job, {{"time_limit", 6000U}}, 1000)->status, 0);
}

TEST(GeneratedLua, AJobMayBeMadeSmallerThatHasMoreByDefaultThanComesWithItsGpus)
{
    const Policy policy = shipped("criann.yaml");
    const auto script = *lua::load_submit_script(job_submit_lua(policy));
    // Default with one GPU: 16 GiB.
    const ScriptFields job{
        {"partition", "calibration"}, {"qos", "gpuq_calibration"}, {"time_limit", 60U},
        {"user_name", "a"},           {"num_tasks", 1U},           {"tres_per_node", "gres:gpu:1"},
        {"min_mem_per_cpu", 30000U}};
    const auto allowed = [&](const char* field, std::uint32_t value) {
        return script->modify(job, {{field, value}}, 1000)->status == 0;
    };
    EXPECT_TRUE(allowed("time_limit", 5U));
    EXPECT_TRUE(allowed("time_limit", 90U)) << "within the queue's";
    EXPECT_FALSE(allowed("time_limit", 180U));
    EXPECT_TRUE(allowed("min_mem_per_node", 400U)) << "replaces the other";
    EXPECT_TRUE(allowed("min_mem_per_cpu", 29000U));
    EXPECT_FALSE(allowed("min_mem_per_cpu", 30001U));
    EXPECT_FALSE(allowed("min_mem_per_node", 0U)) << "all there is";
    EXPECT_FALSE(allowed("num_tasks", 8U));
}

TEST(GeneratedLua, TellsItsVersionToTheProbe)
{
    const Policy policy = shipped("criann.yaml");
    const auto script = *lua::load_submit_script(job_submit_lua(policy));
    const auto answer = script->submit({{"name", "gpuq-policy-probe"}}, {});
    EXPECT_EQ(answer->status, 2002);
    EXPECT_THAT(answer->messages, testing::ElementsAre("gpuq-policy " + lua_version(policy)));
    EXPECT_NE(lua_version(policy), lua_version(shipped("teaching.yaml")));
}

/// The script of a policy that calls the site's own.
std::unique_ptr<SubmitScript> with_site(const std::string& submit, const std::string& modify = "")
{
    const std::string site = "function slurm_job_submit(job, partitions, uid) " + submit +
                             " return slurm.SUCCESS end\n"
                             "function slurm_job_modify(job, record, partitions, uid) " +
                             modify + " return slurm.SUCCESS end\nreturn slurm.SUCCESS\n";
    return *lua::load_submit_script(
        with_site_script(job_submit_lua(shipped("criann.yaml")), site).text);
}

const ScriptFields k_two_hours{
    {"user_name", "ada"}, {"time_limit", 120U}, {"tres_per_node", "gres:gpu:1"}};

TEST(SiteScript, RefusesBeforeThePolicy)
{
    const auto script = with_site("if job.user_name == 'ada' then slurm.log_user('not %s', 'ada') "
                                  "return 2099 end");
    const auto answer = script->submit(k_two_hours, {});
    EXPECT_EQ(answer->status, 2099);
    EXPECT_THAT(answer->messages, testing::ElementsAre("not ada"));
    EXPECT_FALSE(answer->fields.contains("partition"));
    auto other = k_two_hours;
    other["user_name"] = "ben";
    EXPECT_EQ(script->submit(other, {})->status, 0);
}

TEST(SiteScript, ItsChangesCountAndThePolicyJudgesThem)
{
    const auto script = with_site("job.time_limit = 49 * 60 job.partition = 'long'");
    const auto answer = script->submit(k_two_hours, {});
    EXPECT_NE(answer->status, 0);
    EXPECT_THAT(answer->messages, testing::Contains(testing::HasSubstr("at most 2 days")));
    const auto elsewhere = with_site("job.partition = 'cpu' job.qos = 'site'");
    const auto outside = elsewhere->submit(k_two_hours, {});
    EXPECT_EQ(outside->status, 0);
    EXPECT_EQ(outside->fields.at("qos"), ScriptFields::mapped_type("site"));
}

TEST(SiteScript, AChangeOfAJobIsJudgedByBoth)
{
    const auto script =
        with_site("", "if uid == 1000 and job.time_limit == 7 then return 2051 end");
    const ScriptFields job{{"partition", "calibration"},
                           {"qos", "gpuq_calibration"},
                           {"time_limit", 60U},
                           {"user_name", "a"},
                           {"tres_per_node", "gres:gpu:1"}};
    EXPECT_EQ(script->modify(job, {{"time_limit", 7U}}, 1000)->status, 2051);
    EXPECT_EQ(script->modify(job, {{"time_limit", 7U}}, 0)->status, 0);
    EXPECT_EQ(script->modify(job, {{"time_limit", 8U}}, 1000)->status, 0);
    EXPECT_NE(script->modify(job, {{"time_limit", 180U}}, 1000)->status, 0) << "the policy";
}

TEST(SiteScript, NoNameOfAJobAvoidsIt)
{
    const auto script = with_site("", "if true then return 2099 end");
    const ScriptFields job{{"partition", "cpu"}, {"user_name", "a"}};
    const ScriptFields renamed{{"name", "gpuq-policy-probe"}, {"time_limit", 7U}};
    EXPECT_EQ(script->modify(job, renamed, 1000)->status, 2099);
}

TEST(SiteScript, FilesThatItReadsShareItsVariables)
{
    const std::string directory = testing::TempDir();
    const std::string file = directory + "gpuq-site-part.lua";
    std::ofstream(file) << "function slurm_job_submit(job) job.qos = limit .. '' return 0 end\n"
                           "function slurm_job_modify() return 2099 end\n";
    const auto both = with_site_script(job_submit_lua(shipped("criann.yaml")),
                                       "limit = 'of the site' dofile('" + file + "')");
    const auto script = lua::load_submit_script(both.text);
    ASSERT_TRUE(script) << script.error().text;
    EXPECT_EQ((*script)->submit({{"partition", "cpu"}}, {})->fields.at("qos"),
              ScriptFields::mapped_type("of the site"));
    EXPECT_EQ((*script)->modify({{"partition", "cpu"}}, {}, 1000)->status, 2099);
}

TEST(SiteScript, AnErrorInItDoesNotSkipThePolicy)
{
    const auto script = with_site("error('a defect of the site')");
    // Slurm sees the error, as without the policy ...
    const auto outside = script->submit({{"user_name", "ada"}, {"partition", "cpu"}}, {});
    ASSERT_FALSE(outside);
    EXPECT_THAT(outside.error().text, testing::HasSubstr("a defect of the site"));
    // ... except if the policy refuses the job.
    auto long_job = k_two_hours;
    long_job["time_limit"] = 49U * 60;
    EXPECT_THAT(script->submit(long_job, {})->messages,
                testing::Contains(testing::HasSubstr("at most 2 days")));
}

TEST(SiteScript, ItsGlobalVariablesAreItsOwn)
{
    const auto script =
        with_site("submit, guarded, split = 1, 2, 3 count = (count or 0) + 1 "
                  "job.qos = string.format('n%d%s', count, tostring(_G.gpuq_decide ~= nil))");
    ScriptFields job{{"user_name", "ada"}, {"partition", "cpu"}};
    EXPECT_EQ(script->submit(job, {})->fields.at("qos"), ScriptFields::mapped_type("n1true"));
    EXPECT_EQ(script->submit(job, {})->fields.at("qos"), ScriptFields::mapped_type("n2true"));
}

TEST(SiteScript, AnyTextStaysTheSame)
{
    const std::string generated = job_submit_lua(shipped("criann.yaml"));
    for (const char* const end : {"]]", "]=", "]", "]]]==]", "\r\n", "-- %s {} \\"}) {
        const std::string site = std::string("local text = [=[ ]==] ]=] --") + end +
                                 "\nfunction slurm_job_submit(job) job.qos = 'x' return 0 end "
                                 "--" +
                                 end;
        const auto both = with_site_script(generated, site);
        const auto script = lua::load_submit_script(both.text);
        ASSERT_TRUE(script) << script.error().text;
        EXPECT_EQ((*script)->submit({{"partition", "cpu"}}, {})->fields.at("qos"),
                  ScriptFields::mapped_type("x"));
        const auto probe = (*script)->submit({{"name", "gpuq-policy-probe"}}, {});
        EXPECT_THAT(probe->messages, testing::ElementsAre("gpuq-policy " + both.version));
        EXPECT_NE(both.version, with_site_script(generated, site + " ").version);
    }
    EXPECT_FALSE(lua::load_submit_script(with_site_script(generated, "function(").text))
        << "slurmctld must not load it: apply goes back";
}

TEST(GeneratedLua, ATextOfAnyBytesStaysAText)
{
    Policy policy = shipped("criann.yaml");
    policy.queues[0].access.ask->value = "\"]] .. os.exit() --\\ \x01\xff%s";
    const auto script = *lua::load_submit_script(job_submit_lua(policy));
    Submission job;
    job.partition = "visu";
    job.tres.per_node = "gres:gpu:1";
    const auto answer = script->submit(fields_of(job), {});
    EXPECT_EQ(answer->messages, prefixed(decide(Rules(policy), job, {}).messages));
}

} // namespace
} // namespace gpuq::policy
