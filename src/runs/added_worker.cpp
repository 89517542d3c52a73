// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/added_worker.h"

#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/plan.h"
#include "runs/records/record.h"
#include "runs/script.h"
#include "runs/submission.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace gpuq {
namespace {

constexpr LinkNumber k_first{1};

Result<Run> run_like(Store& store, const AddedWorker& added, Time now)
{
    // As requested, without later changes of the other one's time limit.
    TRY_ASSIGN(const std::string text, store.read(layout::run_json(added.like)));
    TRY_ASSIGN(Run run, run_from_json(text));
    if (!run.request.sweep || run.request.program.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("run {} is not the worker of a sweep", added.like.text()));
    }
    run.key = added.key;
    run.submitted_at = now;
    run.request.after.reset(); // the other one has started
    run.request.sweep->number = added.number;
    run.request.name = fmt::format(
        "{}-w{}", run.request.name.substr(0, run.request.name.rfind("-w")), added.number);
    return run;
}

/// The credentials of a run for another one, in a store of its own.
std::optional<CredentialPlan> credentials_like(Store& store, const AddedWorker& added)
{
    const auto text = store.read(credential_plan_json(added.like));
    auto plan = text ? credential_plan_from_json(*text) : Result<CredentialPlan>(text.error());
    if (!plan || !is_of(*plan, added.like)) {
        return std::nullopt;
    }
    const std::string& key = added.like.text();
    plan->directory.replace(plan->directory.rfind(key), key.size(), added.key.text());
    return *std::move(plan);
}

/// A worker without them still works: the tries that need them fail.
void store_tickets(SecretFiles& files, LoginTickets& tickets, const CredentialPlan& plan)
{
    if (!files.make_directory(plan.directory)) {
        return;
    }
    const auto cache =
        plan.principal.empty() ? Result<std::string>(std::string()) : tickets.cache();
    if (cache && !cache->empty()) {
        (void)files.write(plan.directory, k_delivered, *cache);
    }
    const auto token = plan.token ? tickets.token() : Result<std::string>(std::string());
    if (token && !token->empty()) {
        (void)files.write(plan.directory, k_token, *token);
    }
}

} // namespace

Result<JobId> submit_worker(Store& store, Cluster& cluster, Clock& clock, SecretFiles& files,
                            LoginTickets& tickets, const AddedWorker& added,
                            const Patience& patience)
{
    TRY_ASSIGN(const Run run, run_like(store, added, clock.now()));
    Submission submission{run, job_spec(run.request), {}, {}, /*try_now=*/false};
    submission.spec.comment = submitted_comment(run, k_first);
    submission.spec.output =
        fmt::format("{}/{}", store.root(), layout::slurm_log(run.key, k_first));
    submission.script = batch_script({run.request.program.front(), store.root(), run.key, k_first},
                                     run.request, submission.spec);
    const auto rules = store.read(idle_rules_json(added.like));
    submission.idle_rules = rules ? *rules : "";
    const auto credentials = credentials_like(store, added);
    if (credentials) {
        submission.credentials = to_json(*credentials);
        submission.store_ticket = [&] { store_tickets(files, tickets, *credentials); };
    }
    const auto submitted = submit_run(store, cluster, clock, submission, patience);
    if (submitted) {
        return submitted->job;
    }
    if (submitted.error().kind != Error::Kind::unreachable) {
        if (credentials) {
            (void)files.remove_directory(credentials->directory);
        }
        forget_run(store, run.key);
    }
    return submitted.error();
}

} // namespace gpuq
