// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/look_doors.h"
#include "cli/base/say.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/in_force.h"
#include "cli/queries/plain_target.h"
#include "cli/render/why_text.h"
#include "runs/find.h"
#include "runs/free_gpus.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

/// Queries the jobs, then queues and nodes: three queries, only for a waiting run.
Result<void> ask_slurm(Doors& doors, Why& why)
{
    TRY_ASSIGN(Cluster* const cluster, doors.cluster());
    TRY_ASSIGN(const AllJobs all, cluster->all_jobs());
    const JobId id = why.run.job->job;
    const auto mine = std::find_if(all.jobs.begin(), all.jobs.end(),
                                   [&](const Job& job) { return job.id == id; });
    if (mine != all.jobs.end()) {
        why.ahead = jobs_ahead(*mine, all);
    }
    TRY_ASSIGN(const Inventory inventory, cluster->inventory());
    if (mine != all.jobs.end() && wants_estimate(*mine)) {
        auto estimates = expected_starts({id}, all, inventory, doors.clock().now());
        if (const auto found = estimates.find(id); found != estimates.end()) {
            why.run.estimate = std::move(found->second);
        }
    }
    why.advice = what_helps(why.run.run->request, id, why.run.reason, inventory);
    const auto ruled = [](const Partition& queue) { return queue.ruled; };
    if (!why.run.plain &&
        std::any_of(inventory.partitions.begin(), inventory.partitions.end(), ruled)) {
        if (auto answer = policy_answer(doors, why.run.run->request, why.run.run->user)) {
            why.policy = std::move(answer->lines);
        }
    }
    return {};
}

Result<int> why(Invocation& invocation)
{
    if (invocation.words.size() != 1) {
        return fail(Error::Kind::usage, "which run? gpuq why RUN; gpuq ls lists them");
    }
    Doors& doors = invocation.doors;
    TRY_ASSIGN(Store* const store, doors.store());
    TRY_ASSIGN(const Target target, find_target(doors, *store, invocation.words.front()));
    const auto* const key = std::get_if<RunKey>(&target);
    const Looked looked = key == nullptr ? Looked{{std::get<RunStatus>(target)}, {}, {}}
                                         : look(look_doors(doors, *store), {*key});
    Why why{looked.runs.front(), {}, {}, {}, {}};
    if (!looked.slurm_silent.empty()) {
        why.warnings.push_back(looked.slurm_silent);
    }
    if (why.run.state == RunState::waiting && why.run.run && why.run.job) {
        if (const auto asked = ask_slurm(doors, why); !asked) {
            why.warnings.push_back(asked.error().text);
        }
    }
    const Time now = doors.clock().now();
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
            say(warning);
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
