// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/tuning_text.h"

#include "core/number.h"
#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tune/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;
using report::Json;
using report::Table;
using tune::Choice;
using tune::Demand;
using tune::Goal;
using tune::Problem;
using tune::Seconds;

std::string percent(double part)
{
    return fmt::format("{:.1f} %", 100 * part);
}

std::string wait_text(Seconds wait)
{
    return wait == tune::k_never ? "never" : describe(wait);
}

/// `95 % of the runs would wait up to 7 min`.
std::string outcome_text(const Goal& goal, Seconds wait)
{
    if (wait == tune::k_never) {
        return "runs would never start";
    }
    return goal.percent == 0 ? fmt::format("the mean wait would be {}", wait_text(wait))
           : goal.percent == 100
               ? fmt::format("the longest wait would be {}", wait_text(wait))
               : fmt::format("{} % of the runs would wait up to {}", goal.percent, wait_text(wait));
}

/// `calibration: p95<=5m`; a bound with the wait that it means.
std::string goal_title(const Goal& goal, Seconds limit)
{
    const std::string text = sanitised(to_text(goal));
    return goal.is_target() ? text : fmt::format("{}, mean<={}", text, wait_text(limit));
}

Cell wait_cell(Seconds wait, Seconds limit)
{
    return wait <= limit ? Cell(wait_text(wait))
                         : Cell("! " + wait_text(wait), Cell::Tone::warning);
}

const Choice* chosen_of(const TuningReport& tuned)
{
    return tuned.chosen < tuned.tuning.choices.size() ? &tuned.tuning.choices[tuned.chosen]
                                                      : nullptr;
}

std::string change_text(const tune::Change& change)
{
    return sanitised(fmt::format("{} {} -> {}", change.path, change.from, change.to));
}

/// The goals that are missed in the unseen weeks.
std::vector<std::size_t> missed(const Problem& problem, const std::vector<Seconds>& waits)
{
    std::vector<std::size_t> goals;
    for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits[i] > problem.unseen.limits[i]) {
            goals.push_back(i);
        }
    }
    return goals;
}

std::string missed_text(const Problem& problem, std::size_t goal, Seconds wait)
{
    return sanitised(fmt::format("{}: {} ({} with the file as it is; at most {} wanted)",
                                 problem.goals[goal].group, outcome_text(problem.goals[goal], wait),
                                 wait_text(problem.unseen.waits[goal]),
                                 wait_text(problem.unseen.limits[goal])));
}

std::string missed_lines(const Problem& problem, const std::vector<std::size_t>& goals,
                         const std::vector<Seconds>& waits)
{
    std::string text;
    for (const std::size_t goal : goals) {
        text += fmt::format("    {}\n", missed_text(problem, goal, waits[goal]));
    }
    return text;
}

Json json_of(Seconds wait)
{
    return wait == tune::k_never ? Json() : Json(wait);
}

Json json_of(const std::vector<Seconds>& waits)
{
    Json::Elements elements;
    for (const Seconds wait : waits) {
        elements.push_back(json_of(wait));
    }
    return Json::array(std::move(elements));
}

template <typename T>
Json numbers_json(const std::vector<T>& values, T add = 0)
{
    Json::Elements elements;
    for (const T value : values) {
        elements.emplace_back(value + add); // g++ 12 warns about a moved temporary
    }
    return Json::array(std::move(elements));
}

Json json_of(const Choice& choice)
{
    Json::Elements changes;
    for (const tune::Change& change : choice.changes) {
        changes.push_back(Json::object({{"number", change.path},
                                        {"line", change.line},
                                        {"from", change.from},
                                        {"to", change.to}}));
    }
    return Json::object({{"changes", Json::array(std::move(changes))},
                         {"searched", json_of(choice.searched)},
                         {"unseen", json_of(choice.unseen)},
                         {"weeks_held", numbers_json(choice.held)},
                         {"worse", numbers_json<std::size_t>(choice.worse, 1)}});
}

Json json_of(const Demand& demand)
{
    return Json::object({{"group", demand.group.empty() ? Json() : Json(demand.group)},
                         {"runs", demand.runs},
                         {"gpu_hours", demand.gpu_hours},
                         {"of_all", demand.of_all},
                         {"of_pools", demand.of_pools},
                         {"busiest_week", demand.busiest_week},
                         {"of_all_in_it", demand.most_in_a_week}});
}

Json goals_json(const Problem& problem)
{
    Json::Elements goals;
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        const Goal& goal = problem.goals[i];
        goals.push_back(Json::object({{"goal", to_text(goal)},
                                      {"group", goal.group},
                                      {"statistic", statistic_of(goal)},
                                      {"target", goal.is_target()},
                                      {"limit", json_of(problem.searched.limits[i])},
                                      {"limit_unseen", json_of(problem.unseen.limits[i])}}));
    }
    return Json::array(std::move(goals));
}

Json varied_json(const Problem& problem)
{
    Json::Elements numbers;
    for (const tune::Number& number : problem.numbers.all) {
        numbers.push_back(Json::object({{"number", number.path},
                                        {"line", number.line},
                                        {"value", number.choices[number.now]},
                                        {"least", number.choices.front()},
                                        {"most", number.choices.back()}}));
    }
    return Json::array(std::move(numbers));
}

Json weeks_json(const tune::Period& period)
{
    return Json::object({{"first", period.first}, {"last", period.last}});
}

} // namespace

Table demand_table(const TuningReport& tuned)
{
    using Align = Column::Align;
    Table table;
    table.columns = {{"runs_of", "RUNS OF"},
                     {"runs", "RUNS", Align::right},
                     {"gpu_hours", "GPU-HOURS", Align::right},
                     {"of_pools", "OF ITS POOLS", Align::right},
                     {"of_all", "OF ALL GPUS", Align::right},
                     {"week", "IN THE BUSIEST WEEK", Align::right}};
    for (const Demand& demand : tuned.demands) {
        table.rows.push_back(
            {demand.group.empty() ? "all" : sanitised(demand.group), std::to_string(demand.runs),
             fmt::format("{:.0f}", demand.gpu_hours),
             demand.of_pools ? percent(*demand.of_pools) : "-", percent(demand.of_all),
             fmt::format("{} ({})", percent(demand.most_in_a_week), demand.busiest_week)});
    }
    return table;
}

Table choices_table(const TuningReport& tuned)
{
    using Align = Column::Align;
    const Problem& problem = *tuned.problem;
    const auto& choices = tuned.tuning.choices;
    Table table;
    table.columns = {{"goal", ""}, {"as_it_is", "AS IT IS", Align::right}};
    for (std::size_t i = 0; i < choices.size(); ++i) {
        const std::string name = std::to_string(i + 1);
        table.columns.push_back({name, "CHOICE " + name, Align::right});
    }
    const auto add = [&](const std::string& title, const Cell& now, const auto& cell_of) {
        std::vector<Cell> row{title, now};
        for (const Choice& choice : choices) {
            row.push_back(cell_of(choice));
        }
        table.rows.push_back(std::move(row));
    };
    const tune::Period& unseen = problem.weeks.unseen;
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        const Seconds limit = problem.searched.limits[i];
        add(goal_title(problem.goals[i], limit), wait_cell(problem.searched.waits[i], limit),
            [&](const Choice& choice) { return wait_cell(choice.searched[i], limit); });
        const Seconds later = problem.unseen.limits[i];
        add("  in " + unseen.text(), wait_cell(problem.unseen.waits[i], later),
            [&](const Choice& choice) { return wait_cell(choice.unseen[i], later); });
        if (unseen.last > unseen.first) {
            add("  of these weeks held in", std::to_string(tuned.tuning.held[i]),
                [&](const Choice& choice) { return Cell(std::to_string(choice.held[i])); });
        }
    }
    add("changes", Cell("0"),
        [](const Choice& choice) { return Cell(std::to_string(choice.changes.size())); });
    return table;
}

std::string effort_text(const TuningReport& tuned)
{
    const Problem& problem = *tuned.problem;
    std::vector<std::string> names;
    for (const tune::Number& number : problem.numbers.all) {
        names.push_back(sanitised(number.path));
    }
    return fmt::format("{}: searched in {}, checked in {}; {}{}\nvaried: {}\n",
                       sanitised(tuned.trace), problem.weeks.searched.text(),
                       problem.weeks.unseen.text(), counted(tuned.tuning.simulations, "simulation"),
                       tuned.tuning.interrupted ? " (ended early)" : "", fmt::join(names, ", "));
}

std::string impossible_text(const TuningReport& tuned)
{
    std::string text;
    for (const tune::Impossible& one : tuned.impossible) {
        const Demand& demand = one.demand;
        text += fmt::format("no policy can hold '{}': alone on all GPUs, without any limit, {}; ",
                            sanitised(to_text(one.goal)), outcome_text(one.goal, one.best));
        text += demand.of_all > 1
                    ? fmt::format("these runs need {} of the GPU time that there is\n",
                                  percent(demand.of_all))
                : demand.most_in_a_week > 1
                    ? fmt::format("in week {} these runs need {} of the GPU time that there is\n",
                                  demand.busiest_week, percent(demand.most_in_a_week))
                    : fmt::format("these runs need {} of the GPU time, but come in bursts\n",
                                  percent(demand.of_all));
    }
    const Demand& all = tuned.demands.back();
    if (all.of_all > 1) {
        text += fmt::format("all runs together need {} of the GPU time that there is: a policy can "
                            "only choose which of them wait longer from week to week\n",
                            percent(all.of_all));
    }
    return text;
}

std::string other_choices_text(const TuningReport& tuned)
{
    std::string text;
    for (std::size_t i = 0; i < tuned.tuning.choices.size(); ++i) {
        std::vector<std::string> changes;
        for (const tune::Change& change : tuned.tuning.choices[i].changes) {
            changes.push_back(change_text(change));
        }
        if (i != tuned.chosen) {
            text += fmt::format("choice {}: {}\n", i + 1, fmt::join(changes, ", "));
        }
    }
    return text;
}

std::string diff_text(const TuningReport& tuned)
{
    const Choice* const choice = chosen_of(tuned);
    const auto& file = tuned.problem->file;
    const std::string name = sanitised(file.name);
    return choice == nullptr
               ? std::string()
               : tune::unified_diff(file.text, choice->text, name,
                                    fmt::format("{} (choice {})", name, tuned.chosen + 1));
}

std::string verdict_text(const TuningReport& tuned)
{
    const Problem& problem = *tuned.problem;
    const std::string weeks = problem.weeks.unseen.text();
    if (!tuned.tuning.is_better) {
        return fmt::format("no change is recommended: in {} no choice is better than {}\n",
                           problem.weeks.searched.text(), sanitised(problem.file.name));
    }
    const Choice& first = tuned.tuning.choices.front();
    if (!first.worse.empty()) {
        return fmt::format("choice 1 is not recommended: in {}, which the search did not see,\n{}",
                           weeks, missed_lines(problem, first.worse, first.unseen));
    }
    const auto goals = missed(problem, first.unseen);
    return goals.empty()
               ? fmt::format("choice 1 is recommended: in {}, which the search did not see, it "
                             "holds every target and bound\n",
                             weeks)
               : fmt::format("choice 1 is recommended: in {}, which the search did not see, it is "
                             "no worse than the file, but\n{}",
                             weeks, missed_lines(problem, goals, first.unseen));
}

bool holds_unseen(const TuningReport& tuned)
{
    const Choice* const recommended = tuned.tuning.recommended();
    const tune::Baseline& unseen = tuned.problem->unseen;
    return holds(unseen, recommended != nullptr ? recommended->unseen : unseen.waits);
}

std::string waits_text(const std::vector<Goal>& goals, const std::vector<Seconds>& waits)
{
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < waits.size(); ++i) {
        parts.push_back(fmt::format("{} {} {}", sanitised(goals[i].group), statistic_of(goals[i]),
                                    wait_text(waits[i])));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

Json::Members tuning_document(const TuningReport& tuned)
{
    const Problem& problem = *tuned.problem;
    Json::Elements choices;
    for (const Choice& choice : tuned.tuning.choices) {
        choices.push_back(json_of(choice));
    }
    Json::Elements demands;
    for (const Demand& demand : tuned.demands) {
        demands.push_back(json_of(demand));
    }
    Json::Elements impossible;
    for (const tune::Impossible& one : tuned.impossible) {
        impossible.push_back(
            Json::object({{"goal", to_text(one.goal)}, {"best", json_of(one.best)}}));
    }
    return {{"trace", tuned.trace},
            {"left_out", Json::object({{"without_gpus", tuned.left_out.without_gpus},
                                       {"never_started", tuned.left_out.never_started}})},
            {"policy", problem.file.name},
            {"weeks", Json::object({{"searched", weeks_json(problem.weeks.searched)},
                                    {"unseen", weeks_json(problem.weeks.unseen)}})},
            {"goals", goals_json(problem)},
            {"numbers", varied_json(problem)},
            {"demands", Json::array(std::move(demands))},
            {"impossible", Json::array(std::move(impossible))},
            {"as_it_is", Json::object({{"searched", json_of(problem.searched.waits)},
                                       {"unseen", json_of(problem.unseen.waits)},
                                       {"weeks_held", numbers_json(tuned.tuning.held)}})},
            {"choices", Json::array(std::move(choices))},
            {"recommended", tuned.tuning.recommended() != nullptr ? Json(1) : Json()},
            {"diff", diff_text(tuned)},
            {"simulations", tuned.tuning.simulations},
            {"interrupted", tuned.tuning.interrupted}};
}

} // namespace gpuq::cli
