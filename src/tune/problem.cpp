// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/problem.h"

#include "core/nearest.h"
#include "policy/cases.h"
#include "policy/read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::tune {
namespace {

using policy::Rules;

constexpr int k_default_percent_more = 20;

std::vector<std::string> names_of(const std::vector<Group>& groups)
{
    std::vector<std::string> names;
    for (const Group& group : groups) {
        names.push_back(group.name);
    }
    return names;
}

Result<std::size_t> index_of(const std::vector<Group>& groups, const std::string& name)
{
    const auto names = names_of(groups);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        return fail(Error::Kind::usage,
                    fmt::format("no runs of '{}' in these jobs{}; there are runs of: {}", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
    }
    return static_cast<std::size_t>(found - names.begin());
}

/// The groups without a target that the goals must not forget.
std::vector<std::string> others_of(const policy::Policy& policy, const std::vector<Group>& groups,
                                   const std::vector<Goal>& targets)
{
    const auto has_target = [&](const std::string& name) {
        return std::any_of(targets.begin(), targets.end(),
                           [&](const Goal& goal) { return goal.group == name; });
    };
    const bool by_queue = std::any_of(targets.begin(), targets.end(), [&](const Goal& goal) {
        return policy.queue(goal.group) != nullptr;
    });
    std::vector<std::string> others;
    for (const Group& group : groups) {
        const bool is_queue = policy.queue(group.name) != nullptr;
        const bool is_class = group.name == "short" || group.name == "long";
        if ((by_queue ? is_queue : is_class) && !has_target(group.name)) {
            others.push_back(group.name);
        }
    }
    return others;
}

/// Whether each of the file's own tests passes.
std::vector<bool> passes_of(const Rules& rules)
{
    std::vector<bool> passes;
    for (const policy::CaseResult& result : run_cases(rules).results) {
        passes.push_back(result.passed);
    }
    return passes;
}

Result<Baseline> baseline_of(const Problem& problem, const Rules& rules, const Period& period)
{
    TRY_ASSIGN(const Observed observed, observe(rules, period, problem.user_model));
    Baseline baseline{{}, {}, observed.unserved};
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        const Group& group = problem.groups[problem.group_of[i]];
        baseline.waits.push_back(
            wait_of(problem.goals[i], group, observed, period.begin(), period.end()));
        baseline.limits.push_back(limit_of(problem.goals[i], baseline.waits.back()));
    }
    return baseline;
}

} // namespace

Result<std::vector<Goal>> goals_of(const policy::Policy& policy, const std::vector<Group>& groups,
                                   std::vector<Goal> targets, std::vector<Goal> keeps)
{
    if (targets.empty()) {
        targets = targets_of(policy);
        const auto names = names_of(groups);
        std::erase_if(targets, [&](const Goal& goal) { // of a queue without runs
            return std::find(names.begin(), names.end(), goal.group) == names.end();
        });
    }
    if (targets.empty()) {
        return fail(Error::Kind::usage,
                    "tune needs a target: --target 'QUEUE: p95<=5m', or `wait` of a queue in the "
                    "policy");
    }
    if (keeps.empty()) {
        for (const std::string& name : others_of(policy, groups, targets)) {
            keeps.push_back({name, 0, std::nullopt, k_default_percent_more, std::nullopt});
        }
    }
    std::vector<Goal> goals = std::move(targets);
    goals.insert(goals.end(), keeps.begin(), keeps.end());
    for (const Goal& goal : goals) {
        TRY(index_of(groups, goal.group));
    }
    return goals;
}

Result<Problem> problem_of(PolicyFile file, const Jobs& jobs, std::vector<Goal> targets,
                           std::vector<Goal> keeps, const Selection& selection)
{
    const Rules rules(file.policy);
    TRY_ASSIGN(Weeks weeks, weeks_of(jobs.trace, jobs.name));
    TRY_ASSIGN(std::vector<Group> groups, groups_of(rules, jobs.trace, jobs.user_model));
    TRY_ASSIGN(std::vector<Goal> goals,
               goals_of(file.policy, groups, std::move(targets), std::move(keeps)));
    TRY_ASSIGN(Numbers numbers, numbers_of(file.policy, file.text, jobs.trace, selection));
    if (numbers.all.empty()) {
        return fail(
            Error::Kind::usage,
            fmt::format("{}: no number that these jobs and the simulation depend on", file.name));
    }
    Problem problem;
    problem.file = std::move(file);
    problem.user_model = jobs.user_model;
    problem.weeks = std::move(weeks);
    problem.goals = std::move(goals);
    problem.groups = std::move(groups);
    problem.numbers = std::move(numbers);
    problem.passes = passes_of(rules);
    for (const Goal& goal : problem.goals) {
        TRY_ASSIGN(const std::size_t group, index_of(problem.groups, goal.group));
        problem.group_of.push_back(group);
    }
    TRY_ASSIGN(problem.searched, baseline_of(problem, rules, problem.weeks.searched));
    TRY_ASSIGN(problem.unseen, baseline_of(problem, rules, problem.weeks.unseen));
    return problem;
}

std::optional<Trial> trial_of(const Problem& problem, const Point& point)
{
    auto changes = changes_of(problem.numbers, point);
    if (!changes) {
        return std::nullopt;
    }
    auto text = with_replaced(problem.file.text, problem.file.name, changes->replacements);
    if (!text) {
        return std::nullopt;
    }
    auto reading = policy::read_policy(*text, problem.file.name);
    if (!reading || has_errors(reading->findings)) {
        return std::nullopt;
    }
    const auto passes = passes_of(Rules(std::move(reading->policy)));
    for (std::size_t i = 0; i < passes.size(); ++i) {
        if (problem.passes[i] && !passes[i]) {
            return std::nullopt;
        }
    }
    return Trial{*std::move(text), std::move(changes->list)};
}

Result<std::vector<Seconds>> waits_under(const Problem& problem, const std::string& text,
                                         const Period& period, const Baseline& baseline)
{
    TRY_ASSIGN(policy::Reading reading, policy::read_policy(text, problem.file.name));
    const Rules rules(std::move(reading.policy));
    TRY_ASSIGN(const Observed observed, observe(rules, period, problem.user_model));
    std::vector<Seconds> waits(problem.goals.size(), k_never);
    for (std::size_t i = 0; observed.unserved <= baseline.unserved && i < waits.size(); ++i) {
        waits[i] = wait_of(problem.goals[i], problem.groups[problem.group_of[i]], observed,
                           period.begin(), period.end());
    }
    return waits;
}

Costs costs_of(const Problem& problem, const std::vector<Seconds>& waits, const Baseline& baseline)
{
    Costs costs;
    for (std::size_t i = 0; i < waits.size(); ++i) {
        costs.push_back(cost_of(problem.goals[i], waits[i], baseline.limits[i]));
    }
    return costs;
}

bool holds(const Baseline& baseline, const std::vector<Seconds>& waits)
{
    return std::equal(waits.begin(), waits.end(), baseline.limits.begin(),
                      [](Seconds wait, Seconds limit) { return wait <= limit; });
}

} // namespace gpuq::tune
