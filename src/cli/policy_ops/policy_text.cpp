// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/policy_text.h"

#include "core/number.h"
#include "core/walltime.h"
#include "policy/extend.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

namespace gpuq::cli {
namespace {

using policy::Finding;
using policy::Maybe;
using policy::QueuePartition;
using policy::Rules;
using policy::Submission;
using policy::Verdict;
using report::Json;
using std::chrono::seconds;

std::size_t count_of(const std::vector<Finding>& findings, Finding::Weight weight)
{
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(),
                      [&](const Finding& finding) { return finding.weight == weight; }));
}

std::string_view word(Finding::Weight weight)
{
    constexpr std::array<std::string_view, 3> k_keywords{"error", "warning", "note"};
    return k_keywords.at(static_cast<std::size_t>(weight));
}

/// Adds a line `name: value (policy.yaml:12)`.
void add(std::string& text, std::string_view name, const std::string& value,
         const std::string& place)
{
    text += sanitised(fmt::format("{:14} {}{}", fmt::format("{}:", name), value, place)) + "\n";
}

/// One limit of a queue as text.
struct LimitText {
    std::string name;
    std::string value;
    int line;
};

void add_share(std::vector<LimitText>& limits, std::string_view whose, const policy::Share& share)
{
    const std::array<std::pair<const Maybe<int>*, std::string_view>, 6> rows{
        {{&share.gpus, "at most {} GPUs at a time"},
         {&share.shares, "at most {} shares of GPUs at a time"},
         {&share.soft_gpus, "{} GPUs while others wait, more otherwise"},
         {&share.jobs, "{} jobs running"},
         {&share.queued, "{} jobs running and waiting"},
         {&share.gpu_hours_ahead, "{} GPU-hours ahead of the running jobs"}}};
    for (const auto& [rule, messages] : rows) {
        if (*rule) {
            limits.push_back({std::string(whose),
                              fmt::format(fmt::runtime(messages), (*rule)->value), (*rule)->line});
        }
    }
}

std::vector<LimitText> limits_of(const policy::Queue& queue)
{
    std::vector<LimitText> limits;
    limits.push_back({"a job", "at most " + to_text(queue.max_time.value), queue.max_time.line});
    if (queue.limits.job.gpus) {
        limits.push_back(
            {"a job",
             queue.limits.job.gpus->value == 0
                 ? "only shares of GPUs"
                 : "at most " +
                       counted(static_cast<std::uint64_t>(queue.limits.job.gpus->value), "GPU"),
             queue.limits.job.gpus->line});
    }
    if (queue.limits.job.nodes) {
        limits.push_back(
            {"a job",
             "at most " +
                 counted(static_cast<std::uint64_t>(queue.limits.job.nodes->value), "node"),
             queue.limits.job.nodes->line});
    }
    if (queue.limits.job.shares) {
        limits.push_back(
            {"a job",
             fmt::format(
                 "at most {} of a GPU",
                 counted(static_cast<std::uint64_t>(queue.limits.job.shares->value), "share")),
             queue.limits.job.shares->line});
    }
    if (const std::string share = share_text(queue); !share.empty()) {
        limits.push_back(
            {"each GPU", share + ", and no more",
             queue.cpus_per_gpu ? queue.cpus_per_gpu->line : queue.memory_per_gpu_mib->line});
    }
    add_share(limits, "a user", queue.limits.user);
    add_share(limits, "an account", queue.limits.account);
    add_share(limits, "all together", queue.limits.all);
    if (queue.through) {
        limits.push_back({"a job",
                          policy::is_for_sweeps(queue) ? "a worker of gpuq sweep" : "a run of gpuq",
                          queue.through->line});
    }
    if (queue.idle) {
        limits.push_back({"idle GPUs",
                          "a run of gpuq gives them back after " +
                              policy::duration_text(queue.idle->after.value),
                          queue.idle->after.line});
    }
    if (queue.extend) {
        const policy::ExtendRule& rule = *queue.extend;
        limits.push_back(
            {"gpuq extend",
             fmt::format("at most {} at a time, to {} in all{}", to_text(rule.by.value),
                         to_text(policy::longest_extended(queue)),
                         rule.only_if ? ", " + policy::conditions_text(rule.only_if->value) : ""),
             rule.line});
    }
    if (queue.notebook_idle) {
        limits.push_back({"a notebook",
                          fmt::format("ends when it is unused for {}, or sooner (--idle)",
                                      policy::duration_text(queue.notebook_idle->value)),
                          queue.notebook_idle->line});
    }
    return limits;
}

const Rules::QueueRules* rules_named(const Rules& rules, const std::string& name)
{
    const auto& queues = rules.queues();
    const auto found = std::find_if(queues.begin(), queues.end(),
                                    [&](const auto& queue) { return queue.queue->name == name; });
    return found == queues.end() ? nullptr : &*found;
}

std::string_view kind_of(const QueuePartition& queue_partition)
{
    switch (queue_partition.kind) {
    case QueuePartition::Kind::own:
        return queue_partition.guest ? "as a guest" : "";
    case QueuePartition::Kind::more:
        return "beyond the soft limit";
    case QueuePartition::Kind::overflow:
        break;
    }
    return "when idle";
}

/// The pools to which a verdict leads, in order, each once with its best partition.
std::vector<const QueuePartition*> pools_of(const Rules::QueueRules& queue, const Verdict& verdict)
{
    std::vector<const QueuePartition*> queue_partitions;
    for (const QueuePartition& queue_partition : queue.queue_partitions) {
        const auto& names = verdict.partitions;
        const bool given =
            std::find(names.begin(), names.end(), queue_partition.partition) != names.end();
        if (given && queue_partition.kind != QueuePartition::Kind::more) {
            queue_partitions.push_back(&queue_partition);
        }
    }
    return queue_partitions;
}

std::string pool_text(const QueuePartition& queue_partition)
{
    const std::string_view kind = kind_of(queue_partition);
    return kind.empty() ? queue_partition.pool->name
                        : fmt::format("{} ({})", queue_partition.pool->name, kind);
}

std::string accepted_text(const Rules& rules, const Explanation& explanation)
{
    const policy::Policy& policy = rules.policy();
    const Rules::QueueRules& queue = *rules_named(rules, explanation.verdict.queue);
    std::string text;
    add(text, "queue", queue.queue->name, place_of(policy, queue.queue->line));
    std::vector<std::string> pools;
    for (const QueuePartition* queue_partition : pools_of(queue, explanation.verdict)) {
        pools.push_back(pool_text(*queue_partition));
    }
    add(text, "pools", fmt::format("{}", fmt::join(pools, ", then ")),
        place_of(policy, queue.queue->pools.line));
    if (!explanation.verdict.reservation.empty()) {
        add(text, "course", explanation.verdict.reservation, "");
    }
    for (const LimitText& limit : limits_of(*queue.queue)) {
        add(text, limit.name, limit.value, place_of(policy, limit.line));
    }
    const std::string account = policy::stored_account(explanation.job.account);
    for (const policy::FairShare::Part& part : policy.fair_share.shares) {
        if (part.account == account) {
            add(text, "fair share",
                fmt::format("account {} has {} shares", account, part.shares.value),
                place_of(policy, part.shares.line));
        }
    }
    if (explanation.held) {
        add(text, "you have", fmt::format("{} GPUs in this queue now", *explanation.held), "");
    }
    return text;
}

Json::Elements texts(const std::vector<std::string>& messages)
{
    Json::Elements elements;
    for (const std::string& word : messages) {
        elements.emplace_back(word);
    }
    return elements;
}

std::string_view word(Verdict::Outcome outcome)
{
    constexpr std::array<std::string_view, 3> k_keywords{"accepted", "refused", "outside"};
    return k_keywords.at(static_cast<std::size_t>(outcome));
}

std::string expected_text(const policy::Case& test)
{
    return test.in ? fmt::format("queue {}{}", *test.in,
                                 test.course ? ", on the nodes of the course" : "")
                   : fmt::format("refused: {}", test.because);
}

bool takes(const Rules& rules, const Submission& job)
{
    return decide(rules, job, {}).outcome == Verdict::Outcome::accept;
}

} // namespace

std::string check_text(const std::vector<Finding>& findings, const std::string& file)
{
    std::string text;
    for (const Finding& finding : findings) {
        text += sanitised(to_line(finding, file)) + "\n";
    }
    const std::size_t errors = count_of(findings, Finding::Weight::error);
    const std::size_t warnings = count_of(findings, Finding::Weight::warning);
    return text +
           sanitised(fmt::format("{}: {}, {}, {}", file,
                                 errors == 0 ? "can be used" : "can not be used",
                                 counted(errors, "error"), counted(warnings, "warning"))) +
           "\n";
}

Json::Members check_document(const std::vector<Finding>& findings, const std::string& file)
{
    Json::Elements rows;
    for (const Finding& finding : findings) {
        rows.push_back(Json::object({{"level", word(finding.weight)},
                                     {"code", finding.code},
                                     {"line", finding.line > 0 ? Json(finding.line) : Json()},
                                     {"column", finding.column > 0 ? Json(finding.column) : Json()},
                                     {"text", finding.text}}));
    }
    return {{"file", file},
            {"usable", !has_errors(findings)},
            {"errors", count_of(findings, Finding::Weight::error)},
            {"warnings", count_of(findings, Finding::Weight::warning)},
            {"findings", Json::array(std::move(rows))}};
}

std::vector<std::string> policy_remedies(const Rules& rules, const Submission& job)
{
    std::vector<std::string> remedies;
    Submission other = job;
    std::set<std::uint32_t, std::greater<>> limits;
    for (const Rules::QueueRules& queue : rules.queues()) {
        limits.insert(static_cast<std::uint32_t>(queue.queue->max_time.value.count()));
    }
    for (const std::uint32_t limit : limits) {
        other.time_limit = limit;
        if (job.time_limit && *job.time_limit > limit && takes(rules, other)) {
            remedies.push_back(
                fmt::format("-t {}{}: queue {} takes it", limit % 60 == 0 ? limit / 60 : limit,
                            limit % 60 == 0 ? "h" : "m", decide(rules, other, {}).queue));
            break;
        }
    }
    other = job;
    other.partition.reset();
    if (job.partition && takes(rules, other)) {
        remedies.push_back(
            fmt::format("without -p: queue {} takes it", decide(rules, other, {}).queue));
    }
    const policy::GpuTotals asked = gpu_totals(job);
    for (std::uint64_t gpus = asked.per_node; gpus > 1; --gpus) {
        other = job;
        other.tres.per_node = fmt::format("gres:gpu:{}", gpus - 1);
        if (takes(rules, other)) {
            remedies.push_back(
                fmt::format("-g {}: queue {} takes it", gpus - 1, decide(rules, other, {}).queue));
            break;
        }
    }
    other = job;
    other.min_cpus = other.cpus_per_task = other.pn_min_cpus = std::nullopt;
    other.min_mem_per_node.reset();
    if (takes(rules, other)) {
        remedies.push_back(
            fmt::format("without -c and --mem: queue {} takes it, with the CPUs and the memory of "
                        "its GPUs",
                        decide(rules, other, {}).queue));
    }
    other = job;
    other.tres.per_node = fmt::format("gres:gpu:{}", asked.per_node);
    if (!asked.models.empty() && takes(rules, other)) {
        remedies.push_back(fmt::format("any model instead of {}: queue {} takes it",
                                       fmt::join(asked.models, ", "),
                                       decide(rules, other, {}).queue));
    }
    return remedies;
}

std::string explain_text(const Rules& rules, const Explanation& explanation)
{
    const Verdict& verdict = explanation.verdict;
    std::string text;
    switch (verdict.outcome) {
    case Verdict::Outcome::accept:
        text = accepted_text(rules, explanation);
        break;
    case Verdict::Outcome::outside:
        return rules.queues().empty()
                   ? "this policy does not apply: it has no queues\n"
                   : "this policy does not apply: the job requests no GPU and none of its queues\n";
    case Verdict::Outcome::refuse:
        text = "refused\n";
        break;
    }
    for (const std::string& word : verdict.messages) {
        text += sanitised("- " + word) + "\n";
    }
    for (const std::string& why : verdict.declined) {
        text += sanitised("- not before: " + why) + "\n";
    }
    for (const std::string& help : explanation.remedies) {
        text += sanitised("- suggestion: " + help) + "\n";
    }
    return text;
}

Json::Members explain_document(const Rules& rules, const Explanation& explanation)
{
    const Verdict& verdict = explanation.verdict;
    Json::Members members{
        {"outcome", word(verdict.outcome)},
        {"queue", verdict.queue.empty() ? Json() : Json(verdict.queue)},
        {"partitions", Json::array(texts(verdict.partitions))},
        {"course", verdict.reservation.empty() ? Json() : Json(verdict.reservation)},
        {"gpus_held", explanation.held}};
    Json::Elements limits;
    if (const auto* queue = rules_named(rules, verdict.queue)) {
        for (const LimitText& limit : limits_of(*queue->queue)) {
            limits.push_back(Json::object({{"of", limit.name},
                                           {"text", limit.value},
                                           {"line", limit.line > 0 ? Json(limit.line) : Json()}}));
        }
    }
    members.emplace_back("limits", Json::array(std::move(limits)));
    members.emplace_back("words", Json::array(texts(verdict.messages)));
    members.emplace_back("declined", Json::array(texts(verdict.declined)));
    members.emplace_back("helps", Json::array(texts(explanation.remedies)));
    return members;
}

bool is_complete(const TestReport& report)
{
    const auto& [results, rules] = report.cases;
    return report.lua.empty() &&
           std::all_of(results.begin(), results.end(),
                       [](const auto& result) { return result.passed; }) &&
           std::all_of(rules.begin(), rules.end(), [](const auto& rule) { return rule.tests > 0; });
}

std::string test_text(const Rules& rules, const TestReport& report)
{
    const auto& [results, counts] = report.cases;
    const policy::Policy& policy = rules.policy();
    std::string text;
    for (const policy::CaseResult& result : results) {
        const std::string place = place_of(policy, result.test->line);
        text += sanitised(result.passed
                              ? fmt::format("ok      {}", result.test->name)
                              : fmt::format("FAILED  {}{}: {}; expected {}", result.test->name,
                                            place, result.got, expected_text(*result.test))) +
                "\n";
    }
    for (const std::string& difference : report.lua) {
        text += sanitised("FAILED  job_submit.lua differs: " + difference) + "\n";
    }
    std::size_t covered = 0;
    for (const policy::RuleCount& rule : counts) {
        covered += rule.tests > 0 ? 1 : 0;
        if (rule.tests == 0) {
            text += sanitised(fmt::format("no test {}{}", rule.rule, place_of(policy, rule.line))) +
                    "\n";
        }
    }
    const auto passed = std::count_if(results.begin(), results.end(),
                                      [](const auto& result) { return result.passed; });
    return text + fmt::format("{} of {} tests passed, each by gpuq and by job_submit.lua; {} of {} "
                              "rules have a test\n",
                              passed, results.size(), covered, counts.size());
}

Json::Members test_document(const TestReport& report)
{
    Json::Elements tests;
    for (const policy::CaseResult& result : report.cases.results) {
        tests.push_back(Json::object({{"name", result.test->name},
                                      {"line", result.test->line},
                                      {"passed", result.passed},
                                      {"got", result.got}}));
    }
    Json::Elements rules;
    for (const policy::RuleCount& rule : report.cases.rules) {
        rules.push_back(
            Json::object({{"rule", rule.rule}, {"line", rule.line}, {"tests", rule.tests}}));
    }
    return {{"complete", is_complete(report)},
            {"tests", Json::array(std::move(tests))},
            {"lua_differences", Json::array(texts(report.lua))},
            {"rules", Json::array(std::move(rules))}};
}

} // namespace gpuq::cli
