// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/plan_simulation.h"

#include "cli/base/message.h"
#include "cli/policy_ops/in_force.h"
#include "cli/render/simulation_text.h"
#include "core/number.h"
#include "policy/read.h"
#include "report/ending_text.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Json;
using sim::TraceJob;

constexpr std::size_t k_most_named = 10; ///< runs listed by name

Result<Simulated> simulated_before(Admin& admin, const policy::Rules& desired,
                                   const Workload& workload)
{
    TRY_ASSIGN(auto before, applied_policy(admin));
    if (before) {
        const policy::Rules rules(*std::move(before));
        if (auto made = simulated_under(rules, "policy in force", workload)) {
            return made;
        }
    }
    return simulated_plain(desired, workload);
}

std::vector<RefusedRun> newly_refused(const Simulated& before, const Simulated& after,
                                      const sim::Trace& trace)
{
    std::vector<RefusedRun> runs;
    for (const auto& [index, why] : after.refused) {
        if (!before.refused.contains(index)) {
            runs.push_back({trace.jobs[index], why});
        }
    }
    return runs;
}

std::string text_of(const RefusedRun& run)
{
    const TraceJob& job = run.job;
    const std::string user = job.user.empty() ? "" : " of " + sanitised(job.user);
    const std::string account =
        job.account.empty() ? "" : fmt::format(" ({})", sanitised(job.account));
    const std::string gpus = job.shares > 0
                                 ? counted(static_cast<std::uint64_t>(job.shares), "share")
                                 : counted(static_cast<std::uint64_t>(job.gpus), "GPU");
    return fmt::format("    job {}{}{}: {}, {}: {}\n", sanitised(job.id), user, account, gpus,
                       job.limit ? "limit " + describe(*job.limit)
                                 : "ran " + describe(job.duration),
                       sanitised(run.why));
}

Json json_of(const RefusedRun& run)
{
    const TraceJob& job = run.job;
    const auto known = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    return Json::object({{"job", job.id},
                         {"user", known(job.user)},
                         {"account", known(job.account)},
                         {"gpus", job.gpus},
                         {"shares", job.shares},
                         {"limit", job.limit},
                         {"ran", job.duration},
                         {"why", run.why}});
}

} // namespace

void note_assumed_date(const Invocation& invocation, const policy::Policy& policy,
                       const Workload& workload)
{
    if (const std::string note = assumed_date(policy, workload); !note.empty()) {
        print_note(invocation.globals.quiet, note);
    }
}

Result<PlanSimulation> simulate_plan(Invocation& invocation, Admin& admin,
                                     const govern::Candidate& desired)
{
    TRY_ASSIGN(const Workload workload, workload_in(invocation));
    TRY_ASSIGN(auto reading, policy::read_policy(desired.text, desired.file));
    note_assumed_date(invocation, reading.policy, workload);
    const policy::Rules rules(std::move(reading.policy));
    TRY_ASSIGN(Simulated before, simulated_before(admin, rules, workload));
    TRY_ASSIGN(Simulated after, simulated_under(rules, desired.file, workload));
    PlanSimulation simulation{workload.name, workload.left_out(), desired.file, {}, {}};
    simulation.newly_refused = newly_refused(before, after, workload.trace);
    simulation.all.push_back(std::move(before));
    simulation.all.push_back(std::move(after));
    return simulation;
}

std::string consequences_text(const PlanSimulation& simulation)
{
    std::string text = left_out_text(simulation.trace, simulation.left_out);
    const auto& refused = simulation.newly_refused;
    if (!refused.empty()) {
        text += fmt::format("{} would be refused that {} taken now:\n",
                            counted(refused.size(), "run"), refused.size() == 1 ? "is" : "are");
    }
    for (std::size_t i = 0; i < std::min(refused.size(), k_most_named); ++i) {
        text += text_of(refused[i]);
    }
    if (refused.size() > k_most_named) {
        text += fmt::format("    and {} more\n", refused.size() - k_most_named);
    }
    return text + broken_text(simulation.all.back());
}

Json plan_simulation_json(const PlanSimulation& simulation)
{
    Json::Elements named;
    const auto& refused = simulation.newly_refused;
    for (std::size_t i = 0; i < std::min(refused.size(), k_most_named); ++i) {
        named.push_back(json_of(refused[i]));
    }
    Json::Members members =
        simulation_document(simulation.all, simulation.trace, simulation.left_out);
    members.emplace_back("newly_refused", refused.size());
    members.emplace_back("refused_runs", Json::array(std::move(named)));
    members.emplace_back("broken_targets", broken_json(simulation.all.back()));
    return Json::object(std::move(members));
}

} // namespace gpuq::cli
