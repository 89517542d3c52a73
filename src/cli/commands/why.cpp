// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/desk_job.h"
#include "cli/policy_ops/in_force.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/why_text.h"
#include "core/pending_reason.h"
#include "core/strings.h"
#include "ports/cluster.h"
#include "runs/find.h"
#include "runs/insight/lacking.h"
#include "runs/insight/overview.h"
#include "runs/queues/free_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpuq::cli {
namespace {

/// Without a time limit, a job would run into any reservation.
constexpr std::chrono::minutes k_long{365 * 24 * 60};

/// A pending job may name several.
std::vector<std::string> queues_of(const Job& job)
{
    std::vector<std::string> queues;
    for (const std::string_view name : fields(job.partition, ",")) {
        queues.emplace_back(name);
    }
    return queues;
}

void add_policy(Services& services, Why& why)
{
    const Request& request = why.run.run->request;
    if (!why.run.plain) {
        if (auto answer = policy_answer(services, request, why.run.run->user)) {
            why.policy = std::move(answer->lines);
        }
    }
    using Kind = PendingReason::Kind;
    const Kind kind = kind_of_reason(why.run.reason);
    const std::string later =
        kind == Kind::closed || kind == Kind::too_large
            ? allowed_later(services, request.account, request.gpus, request.walltime)
            : "";
    if (!later.empty()) {
        why.policy.push_back(later);
    }
}

/// With the run times that all of gpuq's processes have observed.
std::optional<StartForecast> forecast_of(Services& services, Cluster& cluster, JobId id,
                                         const AllJobs& all, const Inventory& inventory, Time now)
{
    const auto store = services.store();
    const auto name = cluster.name();
    if (!store || !name) {
        return std::nullopt;
    }
    const RunTimes times = learn_run_times(**store, *name, all, now);
    return forecast_starts({id}, all, inventory, times, now).at(id);
}

/// Queries the jobs, then queues, nodes and reservations: four queries, only for a waiting run.
Result<void> query_slurm(Services& services, Why& why)
{
    const Time now = services.clock().now();
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const AllJobs all, cluster->all_jobs());
    const JobId id = why.run.job->job;
    const auto mine = std::find_if(all.jobs.begin(), all.jobs.end(),
                                   [&](const Job& job) { return job.id == id; });
    if (mine != all.jobs.end()) {
        why.ahead = jobs_ahead(*mine, all);
    }
    TRY_ASSIGN(const Inventory inventory, cluster->inventory());
    if (mine != all.jobs.end() && wants_estimate(*mine)) {
        auto estimates = expected_starts({id}, all, inventory, now);
        if (const auto found = estimates.find(id); found != estimates.end()) {
            why.run.estimate = std::move(found->second);
        }
    }
    if (mine != all.jobs.end() && why.run.reason == "Resources") {
        why.lacking = lacking_beside_gpus(*mine, all, inventory, now);
    }
    if (mine != all.jobs.end() && could_start(*mine)) {
        why.forecast = forecast_of(services, *cluster, id, all, inventory, now);
    }
    why.advice = remedies(why.run.run->request, id, why.run.reason, inventory);
    TRY_ASSIGN(const auto reservations, cluster->reservations());
    if (mine != all.jobs.end()) {
        why.reserved = in_the_way(reserved_gpus(reservations, inventory.nodes), queues_of(*mine),
                                  now, now + mine->walltime.value_or(k_long));
    }
    const auto ruled = [](const Partition& queue) { return queue.ruled; };
    if (std::any_of(inventory.partitions.begin(), inventory.partitions.end(), ruled)) {
        add_policy(services, why);
        if (why.forecast) {
            why.forecast = within_hours(services, mine->partition, *std::move(why.forecast));
        }
    }
    return {};
}

Result<RunStatuses> worker_of(Services& services, Store& store, sweeps::Sweep sweep)
{
    TRY_ASSIGN(const SweepStatus status, query_sweep(services, store, std::move(sweep)));
    const RunStatus* const worker = next_worker(status);
    if (worker == nullptr) {
        return fail(Error::Kind::missing,
                    fmt::format("sweep {} ({}) has no worker that could wait; gpuq show {}",
                                status.sweep.name, word(status.state), status.sweep.name));
    }
    return RunStatuses{{*worker}, status.slurm_silent, {}};
}

Result<RunStatuses> statuses_of(Services& services, Store& store, const std::string& argument)
{
    TRY_ASSIGN(auto sweep, find_sweep_target(store, argument));
    if (sweep) {
        return worker_of(services, store, std::move(sweep->sweep));
    }
    TRY_ASSIGN(const Target target, find_target(services, store, argument));
    const auto* const key = std::get_if<RunKey>(&target);
    return key == nullptr ? RunStatuses{{std::get<RunStatus>(target)}, {}, {}}
                          : query_status(status_sources(services, store), {*key});
}

Result<int> why(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage, "which run? gpuq why RUN; gpuq ls lists them");
    }
    Services& services = invocation.services;
    TRY_ASSIGN(const auto of_another, job_for_desk(invocation, "why"));
    TRY_ASSIGN(Store* const store, services.store());
    const auto statuses = of_another ? Result<RunStatuses>(RunStatuses{{*of_another}, {}, {}})
                                     : statuses_of(services, *store, invocation.arguments.front());
    if (!statuses) {
        return show_by_helper(invocation, "why", statuses.error());
    }
    Why why{statuses->runs.front(), {}, {}, {}, {}, {}, {}};
    if (!statuses->slurm_silent.empty()) {
        why.warnings.push_back(statuses->slurm_silent);
    }
    if (why.run.state == RunState::waiting && why.run.run && why.run.job) {
        if (const auto asked = query_slurm(services, why); !asked) {
            why.warnings.push_back(asked.error().text);
        }
    }
    const Time now = services.clock().now();
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(why_document(why, now))));
        return 0;
    }
    const std::vector<std::string> lines = why_lines(why, now);
    for (const std::string& warning : why.warnings) {
        const auto has_it = [&](const std::string& line) {
            return line.find(warning) != line.npos;
        };
        if (std::none_of(lines.begin(), lines.end(), has_it)) {
            print_message(warning);
        }
    }
    for (const std::string& line : lines) {
        TRY(print_line(line));
    }
    return 0;
}

} // namespace

const Verb k_why_verb{"why", "gpuq why RUN", "why a run waits, until when, and suggestions", why};

} // namespace gpuq::cli
