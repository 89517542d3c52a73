// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/cases.h"

#include "core/comment.h"
#include "policy/calendar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gpuq::policy {
namespace {

using Outcome = Verdict::Outcome;

bool contains_part(const std::vector<std::string>& messages, const std::string& part)
{
    return std::any_of(messages.begin(), messages.end(), [&](const std::string& word) {
        return word.find(part) != std::string::npos;
    });
}

CaseResult evaluate(const Case& test, const Verdict& verdict)
{
    switch (verdict.outcome) {
    case Outcome::accept: {
        const bool there = !test.course || verdict.reservation == *test.course;
        return {&test, test.in == verdict.queue && there,
                fmt::format("queue {}{}", verdict.queue,
                            there ? "" : ", not on the nodes of the course")};
    }
    case Outcome::refuse:
        return {&test, !test.in && contains_part(verdict.messages, test.because),
                fmt::format("refused: {}", fmt::join(verdict.messages, "; "))};
    case Outcome::outside:
        break;
    }
    return {&test, false, "not a job of this policy: it requests no GPU and none of its queues"};
}

/// The rules of one queue, each with the sentence by which it refuses a job.
std::vector<std::pair<RuleCount, std::string>> rules_of(const Rules::QueueRules& rules)
{
    const Queue& queue = *rules.queue;
    const auto named = [&](std::string_view what) {
        return fmt::format("queue {}: {}", queue.name, what);
    };
    std::vector<std::pair<RuleCount, std::string>> list;
    list.push_back({{named("time"), queue.max_time.line, 0}, rules.sentences.time});
    if (!queue.access.is_open()) {
        list.push_back({{named("allow"), queue.access.line, 0}, rules.sentences.access});
    }
    if (queue.through) {
        list.push_back({{named("through"), queue.through->line, 0}, rules.sentences.through});
    }
    if (queue.models) {
        list.push_back({{named("models"), queue.models->line, 0}, rules.sentences.model});
    }
    if (!rules.sentences.share.empty()) {
        const int line =
            queue.cpus_per_gpu ? queue.cpus_per_gpu->line : queue.memory_per_gpu_mib->line;
        list.push_back({{named("per_gpu"), line, 0}, rules.sentences.share});
    }
    if (queue.limits.job.gpus) {
        list.push_back({{named("limits of a job, gpus"), queue.limits.job.gpus->line, 0},
                        rules.sentences.gpus});
    }
    if (queue.limits.job.nodes) {
        list.push_back({{named("limits of a job, nodes"), queue.limits.job.nodes->line, 0},
                        rules.sentences.nodes});
    }
    if (const auto most = queue.limits.most_shares_of_a_job()) {
        list.push_back({{named("limits on shares"), most->line, 0}, rules.sentences.share_count});
    }
    return list;
}

/// The same for all queues, outside of the calendar and at each time of it; every rule once.
std::vector<std::pair<RuleCount, std::string>> rules_at_all_times(const Policy& policy)
{
    std::vector<Policy> states{policy};
    for (const LocalMinutes time : changes_in_a_week(policy)) {
        states.push_back(policy_at(policy, time));
    }
    std::vector<std::pair<RuleCount, std::string>> list;
    std::set<std::pair<std::string, int>> known;
    for (Policy& state : states) {
        const Rules rules(std::move(state));
        for (const Rules::QueueRules& queue : rules.queues()) {
            for (auto& row : rules_of(queue)) {
                if (known.emplace(row.first.rule, row.first.line).second) {
                    list.push_back(std::move(row));
                }
            }
        }
    }
    return list;
}

} // namespace

Submission submission_of(const Case& test)
{
    Submission job;
    job.user_name = test.user;
    job.account = test.account;
    job.partition = test.queue;
    job.min_nodes = static_cast<std::uint32_t>(test.nodes);
    job.comment = test.through == Submitter::other ? "" : k_comment_prefix;
    if (test.through == Submitter::sweep) {
        job.comment += k_worker_suffix;
    }
    if (test.time) {
        job.time_limit = static_cast<std::uint32_t>(test.time->count());
    }
    ask_for(job, test.cpus, test.memory_mib);
    if (test.shares) {
        job.tres.per_node = fmt::format("gres:shard:{}", *test.shares);
    }
    const auto gpus = parse_gpu_counts(test.gpus);
    for (const GpuCount& gpu : gpus ? *gpus : std::vector<GpuCount>{}) {
        job.tres.per_node += fmt::format("{}gres:gpu{}:{}", job.tres.per_node.empty() ? "" : ",",
                                         gpu.model.empty() ? "" : ":" + gpu.model, gpu.count);
    }
    return job;
}

Policy policy_of(const Case& test, const Policy& policy)
{
    return test.at ? policy_at(policy, local_time_of(*test.at)) : policy;
}

CaseReport run_cases(const Rules& rules)
{
    CaseReport report;
    std::vector<Verdict> verdicts;
    for (const Case& test : rules.policy().tests) {
        const auto on = test.course ? std::vector{*test.course} : std::vector<std::string>{};
        const Submission job = submission_of(test);
        verdicts.push_back(test.at ? decide(Rules(policy_of(test, rules.policy())), job, on)
                                   : decide(rules, job, on));
        report.results.push_back(evaluate(test, verdicts.back()));
    }
    const auto count = [&](auto&& meets) {
        return static_cast<int>(std::count_if(verdicts.begin(), verdicts.end(), meets));
    };
    for (const Rules::QueueRules& queue : rules.queues()) {
        const std::string& name = queue.queue->name;
        report.rules.push_back(
            {fmt::format("queue {}", name), queue.queue->line,
             count([&](const Verdict& verdict) { return verdict.queue == name; })});
    }
    for (auto& [rule, sentence] : rules_at_all_times(rules.policy())) {
        rule.tests = count([&, text = sentence](const Verdict& verdict) {
            return contains_part(verdict.messages, text) || contains_part(verdict.declined, text);
        });
        report.rules.push_back(std::move(rule));
    }
    for (const Course& course : rules.policy().courses) {
        report.rules.push_back(
            {fmt::format("course {}", course.name), course.line,
             count([&](const Verdict& verdict) { return verdict.reservation == course.name; })});
    }
    std::stable_sort(
        report.rules.begin(), report.rules.end(),
        [](const RuleCount& one, const RuleCount& other) { return one.line < other.line; });
    return report;
}

} // namespace gpuq::policy
