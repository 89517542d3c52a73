// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/plain_target.h"

#include "cli/render/run_table.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "report/ending_text.h"
#include "runs/find.h"
#include "runs/insight/overview.h"
#include "runs/insight/plain_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_named = 10;
constexpr auto k_patience = 3s;

std::vector<RunStatus> named(const std::vector<RunStatus>& jobs, const std::string& name)
{
    std::vector<RunStatus> found;
    for (const RunStatus& job : jobs) {
        if (job.plain->name == name && job.state != RunState::ended) {
            found.push_back(job);
        }
    }
    if (found.empty()) {
        const auto newest = std::find_if(jobs.begin(), jobs.end(), [&](const RunStatus& job) {
            return job.plain->name == name;
        });
        if (newest != jobs.end()) {
            found.push_back(*newest);
        }
    }
    return found;
}

std::vector<RunStatus> called(const std::vector<RunStatus>& jobs, const std::string& word)
{
    std::vector<RunStatus> found;
    std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(found),
                 [&](const RunStatus& job) { return is_called(*job.plain, word); });
    return found;
}

Error no_such_job(const std::string& word, const std::string& more = "")
{
    return fail(Error::Kind::missing,
                fmt::format("no run '{}', and Slurm has no such job of yours{}", word, more));
}

JobId id_in(const std::string& word)
{
    return JobId{static_cast<std::uint32_t>(std::stoul(word))}; // validated by spells_a_job()
}

/// A job of which only accounting has a record, with few details.
RunStatus status_of(const PastJob& past, const std::string& cluster, Time now)
{
    OwnJob own;
    Job& job = own.job;
    job.id = past.id;
    job.name = past.name;
    job.comment = past.comment;
    job.state = past.state;
    job.exit_status = past.exit_status;
    job.started_at = past.started_at;
    job.ends_at = past.ended_at;
    job.submitted_at = past.started_at;
    job.nodes = std::string(past.started_at == past.ended_at ? 0 : 1, '?');
    return plain_status(own, cluster, now);
}

/// The end of a job that slurmctld has forgotten. Nothing if accounting does not answer or has
/// not recorded it yet.
std::optional<Ending> end_in_accounting(Services& services, const RunStatus& job)
{
    const Time now = services.clock().now();
    const auto accounting = services.accounting();
    const auto past =
        accounting ? (*accounting)->past_job(job.job->job) : Result<PastJob>(accounting.error());
    if (past && past->uid == ::getuid()) {
        return status_of(*past, job.job->cluster, now).ending;
    }
    return past || past.error().kind == Error::Kind::missing
               ? std::optional(Ending{static_cast<int>(ExitStatus::lost), Cause::lost,
                                      "neither Slurm nor its accounting knows the job", now})
               : std::nullopt;
}

/// A job that slurmctld has forgotten.
Result<std::vector<RunStatus>> in_accounting(Services& services, Store& store,
                                             const std::string& word, const std::string& cluster)
{
    TRY_ASSIGN(Accounting* const accounting, services.accounting());
    const auto past = accounting->past_job(id_in(word));
    if (!past && past.error().kind != Error::Kind::missing) {
        return no_such_job(word,
                           fmt::format(" now; accounting could not be queried for older ones: {}",
                                       past.error().text));
    }
    if (!past || past->uid != ::getuid()) {
        return no_such_job(word);
    }
    const RunStatus status = status_of(*past, cluster, services.clock().now());
    if (is_of_a_run(store, *status.plain)) {
        return no_such_job(word);
    }
    return std::vector<RunStatus>{status};
}

} // namespace

RunStatus as_plain_job(const Job& job, const std::string& cluster, Time now)
{
    OwnJob own;
    own.job = job;
    return plain_status(own, cluster, now);
}

PlainJobs find_plain_jobs(Services& services, Store& store, RunStatuses& statuses, Time now)
{
    if (!statuses.slurm_silent.empty()) {
        return {{}, {}, statuses.slurm_silent};
    }
    const auto cluster = services.cluster();
    const auto name = cluster ? (*cluster)->name() : Result<std::string>(cluster.error());
    if (!name) {
        return {{}, {}, name.error().text};
    }
    const OwnJobs own = own_jobs_now(store, **cluster, services.clock(), statuses.own_jobs);
    for (RunStatus& run : statuses.runs) {
        const auto job = std::find_if(own.jobs.begin(), own.jobs.end(), [&](const OwnJob& one) {
            return run.job && run.job->cluster == *name && one.job.id == run.job->job;
        });
        if (run.state == RunState::waiting && job != own.jobs.end()) {
            run.estimate = job->estimate;
        }
    }
    return {plain_statuses(store, own.jobs, *name, now), own.at, own.silent};
}

std::string age_text(const PlainJobs& plain, Time now)
{
    if (!plain.at || !plain.silent.empty()) {
        return fmt::format("plain Slurm jobs {}: {}", plain.at ? "may have changed" : "unknown",
                           plain.silent.empty() ? "Slurm was not asked" : plain.silent);
    }
    const auto age = std::chrono::floor<std::chrono::seconds>(now - *plain.at);
    return age < 2s ? "" : fmt::format("plain Slurm jobs as they were {} ago", describe(age));
}

std::vector<RunStatus> merged(std::vector<RunStatus> runs, std::vector<RunStatus> plain)
{
    std::vector<RunStatus> all;
    all.reserve(runs.size() + plain.size());
    std::merge(std::make_move_iterator(runs.begin()), std::make_move_iterator(runs.end()),
               std::make_move_iterator(plain.begin()), std::make_move_iterator(plain.end()),
               std::back_inserter(all),
               [](const RunStatus& one, const RunStatus& other) { return one.key > other.key; });
    return all;
}

Result<std::vector<RunStatus>> plain_jobs_meant(Services& services, Store& store,
                                                const std::string& word)
{
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const std::string name, cluster->name());
    const Time now = services.clock().now();
    const bool is_id = spells_a_job(word);
    const auto answer = cluster->own_jobs_within(k_patience);
    if (!answer) {
        return fail(Error::Kind::unreachable,
                    fmt::format("no run '{}', and whether Slurm has such a job is not known: {}",
                                word, answer.error().text));
    }
    const OwnJobs own = own_jobs_now(store, *cluster, services.clock(), *answer);
    const auto jobs = plain_statuses(store, own.jobs, name, now);
    auto found = is_id ? called(jobs, word) : named(jobs, word);
    if (!found.empty()) {
        return found;
    }
    if (!is_id) {
        return no_such_job(word);
    }
    return word.find_first_of("_+") == word.npos ? in_accounting(services, store, word, name)
                                                 : no_such_job(word);
}

Result<Target> find_target(Services& services, Store& store, const std::string& word)
{
    auto key = find_run(store, word);
    if (key || key.error().kind != Error::Kind::missing || word == "last") {
        return key ? Result<Target>(*std::move(key)) : key.error();
    }
    auto found = plain_jobs_meant(services, store, word);
    if (!found) {
        // If no job has this name, the error for runs is better, as it suggests similar names; it
        // is also the only one without Slurm.
        const bool is_near = found.error().kind == Error::Kind::missing && !spells_a_job(word);
        return is_near || found.error().kind == Error::Kind::usage ? key.error() : found.error();
    }
    if (found->size() > 1) { // for an array, prefer the part that is waiting or running
        std::vector<RunStatus> alive;
        std::copy_if(found->begin(), found->end(), std::back_inserter(alive),
                     [](const RunStatus& job) { return job.state != RunState::ended; });
        const auto exact = std::find_if(found->begin(), found->end(), [&](const RunStatus& job) {
            const std::string& called = job.plain->called;
            return called.find('+') != called.npos && std::to_string(job.job->job.value) == word;
        });
        if (exact != found->end()) {
            return Target(*exact);
        }
        found = alive.size() == 1 ? std::move(alive) : *std::move(found);
    }
    return found->size() == 1 ? Result<Target>(std::move(found->front())) : which_of(*found);
}

Result<RunStatus> plain_job_now(Services& services, Store& store, const RunStatus& job)
{
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    const OwnJobs own = own_jobs_now(store, *cluster, services.clock());
    if (!own.silent.empty() || !own.at) {
        return fail(Error::Kind::unreachable, own.silent);
    }
    const auto found = std::find_if(own.jobs.begin(), own.jobs.end(),
                                    [&](const OwnJob& one) { return one.job.id == job.job->job; });
    if (found != own.jobs.end()) {
        return plain_status(*found, job.job->cluster, services.clock().now());
    }
    RunStatus over = job;
    over.state = RunState::ended;
    over.ending = end_in_accounting(services, job);
    return over;
}

Result<RunKey> find_supervised(Services& services, Store& store, const std::string& word,
                               std::string_view verb, std::string_view instead)
{
    TRY_ASSIGN(Target target, find_target(services, store, word));
    if (auto* key = std::get_if<RunKey>(&target)) {
        return std::move(*key);
    }
    const RunStatus& job = std::get<RunStatus>(target);
    return fail(Error::Kind::usage,
                fmt::format("job {} is a plain Slurm job, which gpuq {} does not support: {}",
                            run_title(job), verb,
                            fmt::format(fmt::runtime(instead), job.job->job.value)));
}

Error which_of(const std::vector<RunStatus>& found)
{
    std::vector<std::string> titles;
    for (const RunStatus& job : found) {
        if (titles.size() < k_named) {
            titles.push_back(run_title(job));
        }
    }
    return fail(Error::Kind::usage,
                fmt::format("which of {} jobs? Name one: {}{}", found.size(),
                            fmt::join(titles, ", "), found.size() > k_named ? ", ..." : ""));
}

} // namespace gpuq::cli
