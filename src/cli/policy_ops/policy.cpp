// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/policy.h"

#include "cli/base/table_output.h"
#include "cli/policy_ops/apply.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/import.h"
#include "cli/policy_ops/in_force.h"
#include "cli/policy_ops/policy_text.h"
#include "cli/policy_ops/probe.h"
#include "cli/policy_ops/simulate.h"
#include "cli/policy_ops/tune.h"
#include "cli/queries/site_context.h"
#include "cli/render/reservation_text.h"
#include "core/comment.h"
#include "core/gpu_request.h"
#include "core/nearest.h"
#include "core/number.h"
#include "core/size.h"
#include "core/walltime.h"
#include "govern/obstacles.h"
#include "policy/calendar.h"
#include "policy/check.h"
#include "policy/lua.h"
#include "policy/objects.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/submit_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

using policy::Rules;
using policy::SlurmRelease;
using policy::Submission;
using policy::Verdict;

constexpr std::array k_options = {
    Option{0, "policy", "FILE", "the policy; default: $GPUQ_POLICY, /etc/gpuq/policy.yaml"},
    Option{0, "slurm", "RELEASE",
           "check: for this Slurm release, as 23.11; default: the local one"},
    Option{'t', "time", "TIME", "explain: how long"},
    Option{'g', "gpus", "GPUS", "explain: GPUs per node: 2, k80:2, 16G+ (that memory), shard:1"},
    Option{'c', "cpus", "N", "explain: CPU cores per node"},
    Option{0, "mem", "SIZE", "explain: memory per node"},
    Option{'N', "nodes", "N", "explain: how many nodes"},
    Option{'p', "queue", "QUEUE", "explain: this queue"},
    Option{0, "user", "NAME", "explain: as this user; default: yourself"},
    Option{'A', "account", "NAME", "explain: with this account"},
    Option{0, "at", "TIME", "explain: as the calendar has it at 21:00, 2026-12-07T21:00, in 2h"},
    Option{0, "trace", "FILE",
           "simulate, tune, plan: these jobs: CSV, SWF or sacct -P output; may be compressed"},
    Option{0, "from-accounting", "SPAN",
           "simulate, tune, plan: the jobs of the last SPAN, as 14d, from Slurm's accounting"},
    Option{'o', "output", "FILE", "import, tune: write the policy to this new file"},
    Option{0, "pause", "", "advance: after failures, leave Slurm alone for 1 to 16 minutes"},
    Option{0, "against", "FILE", "simulate: compare with this policy; default: a plain queue"},
    Option{0, "declared", "HOW",
           "simulate, tune, plan: users state time limits honestly, or rarely"},
    Option{0, "checkpointed", "PERCENT",
           "simulate, tune, plan: share of longer runs that resume after preemption"},
    Option{0, "begins", "TIME", "simulate, tune, plan: when the trace begins, as 2026-11-02T08:00"},
    Option{0, "node-failures", "TIME",
           "simulate, plan: each node fails once in TIME, as 90d, for 4h (90d,1d: for a day)"},
    Option{0, "html", "FILE", "simulate: also write a page with the figures and their charts"},
    Option{0, "target", "GOAL", "tune: 'QUEUE: p95<=5m'; may be repeated; default: the policy's"},
    Option{0, "keep", "BOUND", "tune: the mean wait of others: 'QUEUE: +20%'; may be repeated"},
    Option{0, "vary", "NUMBER", "tune: only these numbers, as queues.long; may be repeated"},
    Option{0, "fix", "NUMBER", "tune: not these numbers; may be repeated"},
    Option{0, "simulations", "N", "tune: at most N simulations; default: 400"},
    Option{0, "for", "TIME", "tune: at most so long"},
    Option{0, "seed", "N", "tune: another search; default: 1"},
    Option{0, "choice", "N", "tune: show, and write, this choice; default: 1"},
};

Result<SlurmRelease> release_in(const std::string& text)
{
    const std::size_t point = text.find('.');
    const auto year = whole_number(std::string_view(text).substr(0, point));
    const std::string_view rest =
        point == std::string::npos ? "" : std::string_view(text).substr(point + 1);
    const auto month = whole_number(rest.substr(0, rest.find('.')));
    if (!year || !month || *year > 99 || *month > 12) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not a Slurm release, such as 23.11", text));
    }
    return SlurmRelease{static_cast<int>(*year), static_cast<int>(*month)};
}

/// The release given by --slurm, else that of this host's Slurm; if it does not respond, the oldest
/// supported one, with a note.
Result<SlurmRelease> release_of(const Invocation& invocation, std::vector<policy::Finding>& notes)
{
    if (const auto text = invocation.options.value("slurm")) {
        return release_in(*text);
    }
    constexpr SlurmRelease k_oldest{22, 5};
    const auto cluster = invocation.services.cluster();
    const auto controller =
        cluster ? (*cluster)->controller() : Result<Controller>(cluster.error());
    if (controller) {
        return release_in(controller->version);
    }
    notes.push_back({policy::Finding::Weight::note, 0, 0, "slurm-unknown",
                     fmt::format("checked for Slurm {:02}.{:02}: no local Slurm responds ({})",
                                 k_oldest.year, k_oldest.month, controller.error().text)});
    return k_oldest;
}

/// Settings that the policy requires and slurm.conf lacks; none if no Slurm responds.
void add_missing_settings(Services& services, const policy::Policy& policy,
                          std::vector<policy::Finding>& findings)
{
    const auto admin = services.admin();
    const auto actual = admin ? (*admin)->state() : Result<SlurmState>(admin.error());
    if (!actual) {
        return;
    }
    for (std::string& text :
         govern::missing_settings(objects_of(policy), *actual, (*admin)->path("slurm.conf"))) {
        findings.push_back({policy::Finding::Weight::warning, 0, 0, "slurm-conf", std::move(text)});
    }
}

Result<int> check(Invocation& invocation)
{
    TRY_ASSIGN(const auto path, named_policy(invocation));
    TRY_ASSIGN(LoadedPolicy loaded, load_policy(invocation.services, path));
    auto& findings = loaded.reading.findings;
    if (!has_errors(findings)) {
        TRY_ASSIGN(const SlurmRelease release, release_of(invocation, findings));
        const auto more = consequences(loaded.reading.policy, release,
                                       local_time(invocation.services.clock().now()));
        findings.insert(findings.end(), more.begin(), more.end());
        if (!invocation.options.has("slurm")) {
            add_missing_settings(invocation.services, loaded.reading.policy, findings);
        }
    }
    TRY(print_text(invocation.globals.json
                       ? report::json_document(check_document(findings, loaded.path))
                       : check_text(findings, loaded.path)));
    return has_errors(findings) ? 1 : 0;
}

/// The queues that may accept a job of the user, or the one that is requested.
std::vector<std::string> queues_for(const policy::Policy& policy, const Submission& job)
{
    if (job.partition) {
        return {*job.partition};
    }
    const auto account = job.account.empty() ? std::nullopt : std::optional(job.account);
    const auto entry = entry_of(policy, job.user_name, account);
    std::vector<std::string> names;
    for (const policy::Queue& queue : policy.queues) {
        if (entry.at(queue.name) != SiteContext::Entry::closed) {
            names.push_back(queue.name);
        }
    }
    return names;
}

/// The GPUs given by -g; for `16G+` those that `gpuq run` would choose.
Result<GpuRequest> gpus_in(const Options& options, const policy::Policy& policy,
                           const Submission& job)
{
    TRY_ASSIGN(GpuRequest gpus, parse_gpu_request(options.value("gpus").value_or("1")));
    if (gpus.mig) {
        return fail(Error::Kind::usage, "-g: name the model of the MIG devices as Slurm does");
    }
    if (gpus.min_memory_mib) {
        TRY_ASSIGN(gpus.model, model_among(gpus, queues_for(policy, job), gpus_of(policy)));
        if (!gpus.model) {
            return fail(
                Error::Kind::usage,
                "the policy does not list the GPUs of its pools: name a model with -g MODEL:N");
        }
    }
    return gpus;
}

Result<Submission> submission_in(const Options& options, const policy::Policy& policy)
{
    Submission job;
    job.user_name = options.value("user").value_or(user_name());
    job.account = options.value("account").value_or("");
    job.partition = options.value("queue");
    if (const auto time = options.value("time")) {
        TRY_ASSIGN(const std::chrono::minutes limit, parse_walltime(*time));
        job.time_limit = static_cast<std::uint32_t>(limit.count());
    }
    const auto nodes = whole_number(options.value("nodes").value_or("1"));
    if (!nodes || *nodes == 0 || *nodes > 65536) {
        return fail(Error::Kind::usage, "-N: a number of nodes");
    }
    job.min_nodes = static_cast<std::uint32_t>(*nodes);
    job.comment = k_comment_prefix;
    std::optional<int> cpus;
    if (const auto text = options.value("cpus")) {
        const auto number = whole_number(*text);
        if (!number || *number == 0 || *number > 4096) {
            return fail(Error::Kind::usage, "-c: a number of CPU cores");
        }
        cpus = static_cast<int>(*number);
    }
    std::optional<std::uint64_t> memory;
    if (const auto text = options.value("mem")) {
        TRY_ASSIGN(memory, parse_memory_mib(*text));
    }
    ask_for(job, cpus, memory);
    TRY_ASSIGN(const GpuRequest gpus, gpus_in(options, policy, job));
    const std::string gres = gres_text(gpus);
    job.tres.per_node = gres.empty() ? "" : "gres:" + gres;
    return job;
}

/// GPUs of the caller's running jobs in a queue; unknown if Slurm does not respond, or for another
/// user.
std::optional<int> held_in(const Invocation& invocation, const Rules& rules,
                           const std::string& queue)
{
    const auto cluster = invocation.services.cluster();
    if (!cluster || invocation.options.has("user")) {
        return std::nullopt;
    }
    const auto jobs = (*cluster)->own_jobs();
    if (!jobs) {
        return std::nullopt;
    }
    int held = 0;
    for (const Job& job : *jobs) {
        const auto* where = rules.of_partition(job.partition);
        if (job.state == JobState::running && where != nullptr && where->queue->name == queue) {
            held += job.gpus;
        }
    }
    return held;
}

/// The policy that is named; else the one in force. As its calendar has it at --at, or now.
Result<policy::Policy> policy_to_explain(const Invocation& invocation)
{
    const Time now = invocation.services.clock().now();
    TRY_ASSIGN(const Time moment, parse_start(invocation.options.value("at").value_or("now"), now));
    const auto named = invocation.options.value("policy");
    if (!named && !invocation.services.variable("GPUQ_POLICY")) {
        if (auto applied = policy_in_force(invocation.services, moment)) {
            return *std::move(applied);
        }
    }
    TRY_ASSIGN(LoadedPolicy loaded, load_valid_policy(invocation.services, named));
    return policy_at(std::move(loaded.reading.policy), policy::to_local(moment));
}

/// Slurm would refuse an unknown partition without listing those that exist.
Result<void> check_queue(const Rules& rules, const Submission& job)
{
    if (!job.partition || rules.of_partition(*job.partition) != nullptr) {
        return {};
    }
    std::vector<std::string> names;
    for (const Rules::QueueRules& queue : rules.queues()) {
        names.push_back(queue.queue->name);
    }
    return fail(Error::Kind::missing,
                fmt::format("no queue '{}'{}; there are: {}", *job.partition,
                            did_you_mean(*job.partition, names), fmt::join(names, ", ")));
}

Result<int> explain(Invocation& invocation)
{
    if (invocation.arguments.size() > 1) {
        return fail(Error::Kind::usage,
                    fmt::format("unexpected argument '{}'; name the file with --policy FILE",
                                invocation.arguments[1]));
    }
    Explanation explanation;
    TRY_ASSIGN(policy::Policy policy, policy_to_explain(invocation));
    const Rules rules(std::move(policy));
    TRY_ASSIGN(explanation.job, submission_in(invocation.options, rules.policy()));
    TRY(check_queue(rules, explanation.job));
    explanation.verdict = decide(rules, explanation.job, {});
    if (explanation.verdict.outcome == Verdict::Outcome::refuse) {
        explanation.remedies = policy_remedies(rules, explanation.job);
    } else if (explanation.verdict.outcome == Verdict::Outcome::accept) {
        explanation.held = held_in(invocation, rules, explanation.verdict.queue);
    }
    TRY(print_text(invocation.globals.json
                       ? report::json_document(explain_document(rules, explanation))
                       : explain_text(rules, explanation)));
    return explanation.verdict.outcome == Verdict::Outcome::refuse
               ? static_cast<int>(ExitStatus::refused)
               : 0;
}

/// The tests that the generated script decides differently from `decide`.
Result<std::vector<std::string>> differences(Services& services, const Rules& rules)
{
    std::vector<std::string> texts;
    for (const policy::Case& test : rules.policy().tests) {
        const auto on = test.course ? std::vector{*test.course} : std::vector<std::string>{};
        const Submission job = submission_of(test);
        const Rules then(policy_of(test, rules.policy()));
        const Verdict verdict = decide(then, job, on);
        TRY_ASSIGN(const auto script, services.submit_script(job_submit_lua(then.policy())));
        TRY_ASSIGN(const ScriptAnswer answer, script->submit(fields_of(job), on));
        const auto partition = answer.fields.find("partition");
        const bool accepted = verdict.outcome == Verdict::Outcome::accept;
        const bool same =
            (answer.status == 0) == (verdict.outcome != Verdict::Outcome::refuse) &&
            (!accepted || (partition != answer.fields.end() &&
                           partition->second == decltype(partition->second)(fmt::format(
                                                    "{}", fmt::join(verdict.partitions, ",")))));
        if (!same) {
            texts.push_back(fmt::format("{}: status {}, {}", test.name, answer.status,
                                        fmt::join(answer.messages, "; ")));
        }
    }
    return texts;
}

Result<int> test(Invocation& invocation)
{
    TRY_ASSIGN(const auto path, named_policy(invocation));
    TRY_ASSIGN(const LoadedPolicy loaded, load_valid_policy(invocation.services, path));
    const Rules rules(loaded.reading.policy);
    TestReport report;
    report.cases = run_cases(rules);
    TRY_ASSIGN(report.lua, differences(invocation.services, rules));
    TRY(print_text(invocation.globals.json ? report::json_document(test_document(report))
                                           : test_text(rules, report)));
    return is_complete(report) ? 0 : 1;
}

struct Part {
    std::string_view name;
    Result<int> (*run)(Invocation&);
    std::string_view options; ///< those of k_options that it takes, with blanks around each
};
constexpr std::array k_parts = {
    Part{"import", policy_import, " output "},
    Part{"check", check, " policy slurm "},
    Part{"explain", explain, " policy time gpus cpus mem nodes queue user account at "},
    Part{"test", test, " policy "},
    Part{"plan", policy_plan,
         " policy trace from-accounting declared checkpointed begins node-failures "},
    Part{"apply", policy_apply, " policy "},
    Part{"advance", policy_advance, " pause "},
    Part{"drift", policy_drift, " "},
    Part{"rollback", policy_rollback, " "},
    Part{"simulate", policy_simulate,
         " policy trace from-accounting against declared checkpointed begins node-failures html "},
    Part{"tune", policy_tune,
         " policy trace from-accounting declared checkpointed begins output target keep vary fix "
         "simulations "
         "for seed choice "},
    Part{"probe", policy_probe, " "}};

bool takes(const Part& part, std::string_view option)
{
    return part.options.find(fmt::format(" {} ", option)) != std::string_view::npos;
}

/// Rejects options of other subcommands, which would have no effect on the result.
Result<void> check_options(const Part& part, const Options& given)
{
    for (const Option& option : k_options) {
        if (!given.has(option.name) || takes(part, option.name)) {
            continue;
        }
        std::vector<std::string_view> others;
        for (const Part& other : k_parts) {
            if (takes(other, option.name)) {
                others.push_back(other.name);
            }
        }
        return fail(Error::Kind::usage,
                    fmt::format("policy {} takes no --{}: that is for policy {}", part.name,
                                option.name, fmt::join(others, ", ")));
    }
    return {};
}

Result<int> policy_verb(Invocation& invocation)
{
    std::vector<std::string> names;
    for (const Part& part : k_parts) {
        names.emplace_back(part.name);
    }
    const std::string word = invocation.arguments.empty() ? "" : invocation.arguments.front();
    const auto part = std::find_if(k_parts.begin(), k_parts.end(),
                                   [&](const Part& row) { return row.name == word; });
    if (part == k_parts.end()) {
        return fail(Error::Kind::usage,
                    word.empty() ? fmt::format("policy: one of {}", fmt::join(names, ", "))
                                 : fmt::format("policy: unknown command '{}'{}; one of {}", word,
                                               did_you_mean(word, names), fmt::join(names, ", ")));
    }
    TRY(check_options(*part, invocation.options));
    return part->run(invocation);
}

} // namespace

const Verb k_policy_verb{
    "policy",
    "gpuq policy "
    "import|check|explain|test|plan|apply|advance|drift|rollback|simulate|tune|probe [options] "
    "[FILE]",
    "rules of the GPU queues: check a file, try it, put it in force", policy_verb, k_options};

} // namespace gpuq::cli
