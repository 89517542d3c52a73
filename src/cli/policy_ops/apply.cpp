// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/apply.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/in_force.h"
#include "cli/render/simulation_text.h"
#include "core/number.h"
#include "policy/calendar.h"
#include "ports/clock.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <ctime>

namespace gpuq::cli {
namespace {

using govern::Change;
using govern::FieldChange;
using govern::Plan;
using report::Json;

constexpr int k_something_to_do = 10;
constexpr int k_target_broken = 11;

std::string_view word(Change::Action action)
{
    constexpr std::array<std::string_view, 3> k_keywords{"create", "modify", "remove"};
    return k_keywords[static_cast<std::size_t>(action)];
}

std::string shown(const std::optional<std::string>& value)
{
    return value && !value->empty() ? sanitised(*value) : "(none)";
}

std::string text_of(const Change& change)
{
    std::string text =
        fmt::format("{} {} {}", word(change.action), word(change.kind), sanitised(change.name));
    text += change.line > 0 ? fmt::format(" (line {})", change.line) : "";
    const std::string_view effect = word(change.effect);
    text += effect.empty() ? "\n" : fmt::format(": {}\n", effect);
    for (const FieldChange& field : change.fields) {
        text += change.action == Change::Action::create
                    ? fmt::format("    {}: {}\n", field.name, shown(field.becomes))
                    : fmt::format("    {}: {} -> {}\n", field.name, shown(field.was),
                                  shown(field.becomes));
    }
    return text;
}

/// An object of the site: the value in Slurm, and the one in the file.
std::string site_text(const Change& change)
{
    std::string text = fmt::format("site: {} {}{}", word(change.kind), sanitised(change.name),
                                   change.line > 0 ? fmt::format(" (line {})", change.line) : "");
    switch (change.action) {
    case Change::Action::create:
        return text + ": not in Slurm\n";
    case Change::Action::remove:
        return text + ": not in the file\n";
    default:
        break;
    }
    text += " differs from the file; gpuq does not change it\n";
    for (const FieldChange& field : change.fields) {
        text += fmt::format("    {}: {} in Slurm, {} in the file\n", sanitised(field.name),
                            shown(field.was), shown(field.becomes));
    }
    return text;
}

Json effect_of(govern::Effect effect)
{
    return effect == govern::Effect::neither ? Json() : Json(word(effect));
}

Json json_of(const Change& change)
{
    Json::Elements fields;
    for (const FieldChange& field : change.fields) {
        fields.push_back(Json::object({{"name", field.name},
                                       {"was", field.was},
                                       {"becomes", field.becomes},
                                       {"effect", effect_of(field.effect)}}));
    }
    return Json::object({{"action", word(change.action)},
                         {"kind", word(change.kind)},
                         {"name", change.name},
                         {"line", change.line > 0 ? Json(change.line) : Json()},
                         {"effect", effect_of(change.effect)},
                         {"fields", Json::array(std::move(fields))}});
}

Json json_of(const std::vector<std::string>& texts)
{
    return Json::array(Json::Elements(texts.begin(), texts.end()));
}

bool is_empty(const Plan& plan)
{
    return plan.changes.empty() && plan.site.empty() && plan.obstacles.empty() &&
           plan.leaving.empty() && !plan.interrupted;
}

int status_of(const Plan& plan)
{
    // Changes that only wait for jobs to end require no action.
    const bool done =
        plan.changes.empty() && plan.site.empty() && plan.obstacles.empty() && !plan.interrupted;
    return done ? 0 : k_something_to_do;
}

Result<int> print(const Invocation& invocation, const Plan& plan)
{
    TRY(print_text(invocation.globals.json ? report::json_document(plan_document(plan))
                                           : plan_text(plan)));
    return status_of(plan);
}

Result<int> print(const Invocation& invocation, const Plan& plan, const PlanSimulation& simulation)
{
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(plan_document(plan, &simulation))));
    } else {
        TRY(print_text(plan_text(plan) + "\n"));
        TRY(print_table(simulation_table(simulation.all), invocation.globals, invocation.services));
        TRY(print_text(consequences_text(simulation)));
    }
    return simulation.all.back().broken.empty() ? status_of(plan) : k_target_broken;
}

Result<govern::Candidate> candidate(const Invocation& invocation)
{
    TRY_ASSIGN(const auto path, named_policy(invocation));
    TRY_ASSIGN(const LoadedPolicy loaded, load_obeyed_policy(invocation.services, path));
    return govern::candidate_of(loaded.text, loaded.path,
                                local_time(invocation.services.clock().now()));
}

Result<void> takes_no_file(const Invocation& invocation)
{
    if (invocation.arguments.size() > 1 || invocation.options.has("policy")) {
        return fail(Error::Kind::usage,
                    fmt::format("{} works on the policy in force and takes no file",
                                invocation.arguments.front()));
    }
    return {};
}

govern::StepReport teller(const Invocation& invocation)
{
    return [quiet = invocation.globals.quiet](const std::string& step) { print_note(quiet, step); };
}

Result<int> print(const Invocation& invocation, const govern::Applied& applied)
{
    Plan done;
    done.changes = applied.changes;
    done.leaving = applied.leaving;
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(plan_document(done))));
    } else if (!invocation.globals.quiet) {
        print_message(applied.changes.empty()
                          ? std::string("nothing to do: the policy is in force")
                          : "the policy is in force: " + counted(applied.changes.size(), "change"));
        for (const std::string& name : applied.leaving) {
            print_message(
                fmt::format("partition {} still has jobs and takes no more: apply again when they "
                            "have ended",
                            name));
        }
    }
    return 0;
}

} // namespace

std::string plan_text(const Plan& plan)
{
    std::string text;
    for (const Change& change : plan.changes) {
        text += text_of(change);
    }
    for (const Change& change : plan.site) {
        text += site_text(change);
    }
    for (const std::string& name : plan.leaving) {
        text +=
            fmt::format("partition {} will be removed when its jobs have ended\n", sanitised(name));
    }
    if (plan.interrupted) {
        text += fmt::format("an apply was interrupted at '{}': gpuq policy apply resumes it, gpuq "
                            "policy rollback reverts it\n",
                            sanitised(*plan.interrupted));
    }
    for (const std::string& obstacle : plan.obstacles) {
        text += fmt::format("before it can be applied: {}\n", sanitised(obstacle));
    }
    for (const std::string& note : plan.notes) {
        text += fmt::format("note: {}\n", sanitised(note));
    }
    if (is_empty(plan)) {
        return text + "nothing to do\n";
    }
    text += counted(plan.changes.size(), "change");
    return text + (plan.site.empty() ? "\n"
                                     : fmt::format(", {} of the site\n",
                                                   counted(plan.site.size(), "difference")));
}

Json::Members plan_document(const Plan& plan, const PlanSimulation* simulation)
{
    Json::Elements changes;
    for (const Change& change : plan.changes) {
        changes.push_back(json_of(change));
    }
    Json::Elements site;
    for (const Change& change : plan.site) {
        site.push_back(json_of(change));
    }
    return {{"changes", Json::array(std::move(changes))},
            {"site", Json::array(std::move(site))},
            {"leaving", json_of(plan.leaving)},
            {"interrupted", plan.interrupted},
            {"obstacles", json_of(plan.obstacles)},
            {"notes", json_of(plan.notes)},
            {"simulation", simulation == nullptr ? Json() : plan_simulation_json(*simulation)}};
}

Result<std::vector<std::string>> apply_courses(Invocation& invocation, const std::string& policy)
{
    const std::string now = local_time(invocation.services.clock().now());
    // The name with which `up` has created the script.
    TRY_ASSIGN(const govern::Candidate desired, govern::candidate_of(policy, "policy.yaml", now));
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    TRY_ASSIGN(const Plan plan, govern::plan(*admin, desired, now));
    if (!plan.obstacles.empty() || plan.changes.empty()) {
        return plan.obstacles;
    }
    TRY(govern::apply(*admin, desired, now, [](const std::string&) {}));
    return std::vector<std::string>{};
}

Result<int> policy_plan(Invocation& invocation)
{
    TRY_ASSIGN(const govern::Candidate desired, candidate(invocation));
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    TRY_ASSIGN(const Plan found,
               govern::plan(*admin, desired, local_time(invocation.services.clock().now())));
    if (!names_jobs(invocation.options)) {
        return print(invocation, found);
    }
    TRY_ASSIGN(const PlanSimulation simulation, simulate_plan(invocation, *admin, desired));
    return print(invocation, found, simulation);
}

Result<int> policy_drift(Invocation& invocation)
{
    TRY(takes_no_file(invocation));
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    TRY_ASSIGN(const Plan found,
               govern::drift(*admin, local_time(invocation.services.clock().now())));
    return print(invocation, found);
}

Result<int> policy_apply(Invocation& invocation)
{
    TRY_ASSIGN(const govern::Candidate desired, candidate(invocation));
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    TRY_ASSIGN(const govern::Applied applied,
               govern::apply(*admin, desired, local_time(invocation.services.clock().now()),
                             teller(invocation)));
    return print(invocation, applied);
}

Result<int> policy_advance(Invocation& invocation)
{
    TRY(takes_no_file(invocation));
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    const Time now = invocation.services.clock().now();
    TRY_ASSIGN(const govern::Applied applied,
               govern::advance(*admin, local_time(now), teller(invocation),
                               invocation.options.has("pause") ? govern::Pause::after_failures
                                                               : govern::Pause::none));
    TRY_ASSIGN(const int status, print(invocation, applied));
    TRY_ASSIGN(const auto policy, applied_policy(*admin));
    const auto next = policy ? policy::next_change(*policy, now) : std::nullopt;
    if (next && !invocation.globals.quiet) {
        print_message("its calendar changes next on " +
                      policy::weekday_and_time(policy::to_local(*next)));
    }
    return status;
}

Result<int> policy_rollback(Invocation& invocation)
{
    TRY(takes_no_file(invocation));
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    TRY_ASSIGN(const govern::Applied applied,
               govern::rollback(*admin, local_time(invocation.services.clock().now()),
                                teller(invocation)));
    return print(invocation, applied);
}

} // namespace gpuq::cli
