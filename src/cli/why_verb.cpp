// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/why_verb.h"

#include "cli/look_doors.h"
#include "cli/policy_in_force.h"
#include "cli/policy_text.h"
#include "cli/say.h"
#include "cli/table_output.h"
#include "cli/why_text.h"
#include "core/sanitise.h"
#include "runs/find.h"
#include "runs/free_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace gpuq::cli {
namespace {

/// What the policy in force, where it can be read, says to the newest link of a run.
std::vector<std::string> words_of_policy(Doors& doors, const RunStatus& run)
{
    auto policy = policy_in_force(doors);
    if (!policy) {
        return {};
    }
    const policy::Rules rules(*std::move(policy));
    Explanation explanation;
    explanation.job = submission_of(run.run->request, run.run->user);
    explanation.verdict = decide(rules, explanation.job, {});
    std::vector<std::string> lines;
    std::istringstream text(explain_text(rules, explanation));
    for (std::string line; std::getline(text, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// The jobs, then queues and nodes: three questions, for a run that waits and nothing else.
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
    why.advice = what_helps(why.run.run->request, id, why.run.reason, inventory);
    const auto ruled = [](const Partition& queue) { return queue.ruled; };
    if (std::any_of(inventory.partitions.begin(), inventory.partitions.end(), ruled)) {
        why.policy = words_of_policy(doors, why.run);
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
    TRY_ASSIGN(const RunKey key, find_run(*store, invocation.words.front()));
    const Looked looked = look(look_doors(doors, *store), {key});
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
    for (const std::string& warning : why.warnings) {
        say(warning);
    }
    for (const std::string& line : why_lines(why, now)) {
        TRY(print_text(sanitised(line) + "\n"));
    }
    return 0;
}

} // namespace

const Verb k_why_verb{"why", "gpuq why RUN", "why a run waits, until when, and what would help",
                      why};

} // namespace gpuq::cli
