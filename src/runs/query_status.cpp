// SPDX-License-Identifier: GPL-2.0-or-later
// Reads the evidence of each run from disk, queries Slurm once if a run needs it, derives each
// status (runs/status.h) and repairs inconsistent records. Several clients may do this at the same
// time: records are written with write_once, and submit_link makes only one job.
#include "runs/query_status.h"

#include "core/comment.h"
#include "core/layout.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "runs/connect_keys.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/next_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace gpuq {
namespace {

/// A client that has just left a stop request cancels the job itself.
constexpr std::chrono::seconds k_stopper_at_work{5};

constexpr const char* k_begin_time = "BeginTime"; ///< a pending reason of Slurm

/// Slurm's answer about all jobs of this user.
struct Queue {
    std::string cluster;
    std::vector<Job> jobs;
};

Result<Queue> query_slurm(Cluster& cluster)
{
    TRY_ASSIGN(std::string name, cluster.name());
    TRY_ASSIGN(std::vector<Job> jobs, cluster.own_jobs());
    return Queue{std::move(name), std::move(jobs)};
}

/// False for the job of another run: a reinstalled cluster counts job ids from 1 again.
bool may_be_of(const RunKey& key, std::string_view comment)
{
    const auto other = key_in_comment(comment);
    return !other || *other == key;
}

bool is_job_of(const Evidence& evidence, const Job& job)
{
    return evidence.job ? job.id == evidence.job->job && may_be_of(evidence.key, job.comment)
                        : link_in_comment(job.comment) == job_comment(evidence.key, evidence.link);
}

/// The job of a run, by its id or by the key in its comment; among several the active one, else the
/// newest.
const Job* job_of(const Queue& queue, const Evidence& evidence)
{
    const auto rank = [](const Job& job) { return std::pair(!is_over(job.state), job.id); };
    const Job* best = nullptr;
    for (const Job& job : queue.jobs) {
        if (is_job_of(evidence, job) && (best == nullptr || rank(job) > rank(*best))) {
            best = &job;
        }
    }
    return best;
}

std::string cluster_of(const Evidence& evidence)
{
    if (evidence.job) {
        return evidence.job->cluster;
    }
    return evidence.run ? evidence.run->cluster : std::string();
}

SlurmAnswer answer_for(const Queue& queue, const Evidence& evidence)
{
    const std::string cluster = cluster_of(evidence);
    if (!cluster.empty() && cluster != queue.cluster) {
        return NoAnswer{fmt::format("it belongs to cluster '{}'", cluster)};
    }
    const Job* job = job_of(queue, evidence);
    return job == nullptr ? SlurmAnswer(NoSuchJob{}) : SlurmAnswer(*job);
}

PastAnswer query_accounting(const StatusSources& services, const RunKey& key, JobId id)
{
    const auto accounting = services.accounting();
    if (!accounting) {
        return NoAnswer{accounting.error().text};
    }
    auto past = (*accounting)->past_job(id);
    if (past) {
        return may_be_of(key, past->comment) ? PastAnswer(*std::move(past)) : NoSuchJob{};
    }
    return past.error().kind == Error::Kind::missing ? PastAnswer(NoSuchJob{})
                                                     : PastAnswer(NoAnswer{past.error().text});
}

class StatusQuery {
public:
    explicit StatusQuery(const StatusSources& services)
        : m_services(services)
        , m_now(services.clock.now())
    {
        if (auto active = active_runs(services.store)) {
            m_active = *std::move(active);
        }
    }

    RunStatuses query_status(const std::vector<RunKey>& keys, SlurmQuery query)
    {
        std::vector<Evidence> all;
        all.reserve(keys.size());
        for (const RunKey& key : keys) {
            all.push_back(read_evidence(m_services.store, key));
        }
        const bool needed = std::any_of(all.begin(), all.end(), [this](const Evidence& evidence) {
            return needs_slurm(evidence, m_now);
        });
        if (query == SlurmQuery::if_needed && needed) {
            query_jobs_of(all);
        }
        RunStatuses statuses;
        statuses.slurm_silent = m_silent;
        statuses.own_jobs = std::move(m_own_jobs);
        for (Evidence& evidence : all) {
            statuses.runs.push_back(conclude_and_repair(evidence));
        }
        return statuses;
    }

private:
    void query_jobs_of(std::vector<Evidence>& all)
    {
        const auto cluster = m_services.cluster();
        const auto queue = cluster ? query_slurm(**cluster) : Result<Queue>(cluster.error());
        m_cluster = cluster ? *cluster : nullptr;
        m_silent = queue ? "" : queue.error().text;
        for (Evidence& evidence : all) {
            if (!needs_slurm(evidence, m_now)) {
                continue;
            }
            if (queue) {
                take_answer(*queue, evidence);
            } else {
                evidence.slurm = NoAnswer{queue.error().text};
            }
        }
        if (queue) {
            m_own_jobs = queue->jobs;
        }
    }

    void take_answer(const Queue& queue, Evidence& evidence)
    {
        SlurmAnswer answer = answer_for(queue, evidence);
        const Job* job = std::get_if<Job>(&answer);
        if (std::holds_alternative<NoSuchJob>(answer) || (job != nullptr && is_over(job->state))) {
            // The supervisor may have recorded the end between the reading and the query.
            const Evidence before =
                std::exchange(evidence, read_evidence(m_services.store, evidence.key));
            read_slurm_log(evidence);
            if (evidence.link != before.link || (evidence.job && evidence.job != before.job)) {
                // The answer is about another job.
                evidence.slurm = NoAnswer{"it has just continued in another job"};
                return;
            }
        }
        if (job != nullptr && !evidence.job) {
            evidence.job =
                LinkJob{queue.cluster, job->id, job->submitted_at.value_or(m_now), job->batch};
        }
        evidence.slurm = std::move(answer);
        if (evidence.next) {
            const auto next =
                std::find_if(queue.jobs.begin(), queue.jobs.end(),
                             [&](const Job& one) { return one.id == evidence.next->job; });
            evidence.next_slurm =
                next == queue.jobs.end() ? forgotten_next(evidence) : SlurmAnswer(*next);
        }
        if (needs_step(evidence, m_now)) {
            const auto step = m_cluster->has_first_step(evidence.job->job);
            evidence.step_is_over = step && !*step;
        }
        if (needs_accounting(evidence)) {
            evidence.past = query_accounting(m_services, evidence.key, evidence.job->job);
        }
    }

    /// The result for a next link's job that Slurm no longer knows: it ended minutes ago or
    /// earlier, before it could record anything. Accounting distinguishes a cancelled job, which
    /// ends the run, from a failed one.
    SlurmAnswer forgotten_next(const Evidence& evidence)
    {
        const PastAnswer past = query_accounting(m_services, evidence.key, evidence.next->job);
        Job job;
        job.id = evidence.next->job;
        job.state = JobState::node_fail;
        if (const auto* known = std::get_if<PastJob>(&past); known && is_over(known->state)) {
            job.state = known->state;
            return job;
        }
        const bool waited_enough = m_now - evidence.next->submitted_at > k_accounting_patience;
        return std::holds_alternative<NoSuchJob>(past) || waited_enough
                   ? SlurmAnswer(job)
                   : NoAnswer{"Slurm has forgotten the job of the next link, and accounting does "
                              "not show yet how it ended"};
    }

    void read_slurm_log(Evidence& evidence)
    {
        const auto text = m_services.store.read(layout::slurm_log(evidence.key, evidence.link));
        evidence.slurm_log = text ? *text : "";
    }

    RunStatus conclude_and_repair(const Evidence& evidence)
    {
        if (!evidence.trouble.empty()) {
            return conclude(evidence, m_now); // a record that is not seen may be there
        }
        adopt(evidence);
        withdraw(evidence);
        if (is_abandoned(evidence, m_now) && end_allocation(evidence)) {
            Evidence dead = evidence;
            const bool died = had_supervisor(evidence);
            if (died && evidence.run && evidence.run->request.chain) {
                auto& job = std::get<Job>(dead.slurm);
                job.state = JobState::failed;
                job.exit_status = static_cast<int>(ExitStatus::lost);
                return conclude_or_continue(dead);
            }
            dead.ended =
                Ending{static_cast<int>(ExitStatus::lost), Cause::lost,
                       died ? "its supervisor died" : "its supervisor never started", m_now};
            (void)m_services.store.write_once(layout::ended_json(evidence.key),
                                              to_json(*dead.ended));
            return concluded(conclude(dead, m_now));
        }
        return conclude_or_continue(evidence);
    }

    RunStatus conclude_or_continue(const Evidence& evidence)
    {
        RunStatus status = conclude(evidence, m_now);
        if (lets_continue(evidence, status)) {
            return status;
        }
        if (status.state == RunState::ended && status.ending && needs_slurm(evidence, m_now)) {
            (void)m_services.store.write_once(layout::ended_json(evidence.key),
                                              to_json(*status.ending));
        }
        return concluded(std::move(status));
    }

    /// Records a job that its client did not, because it died or the response was lost.
    void adopt(const Evidence& evidence)
    {
        if (evidence.job && !evidence.job_recorded && !may_be_asked_for_again(evidence, m_now)) {
            (void)m_services.store.write_once(layout::job_json(evidence.key, evidence.link),
                                              to_json(*evidence.job));
            (void)m_services.store.write_once(
                layout::job_index(evidence.job->cluster, evidence.job->job),
                evidence.key.text() + "\n");
        }
    }

    /// Submits the next link of a chain if that has not been done: its nodes may be unable to, or
    /// its supervisor died. True if the chain continues.
    bool lets_continue(const Evidence& evidence, RunStatus& status)
    {
        const bool is_over =
            status.state == RunState::ended && status.ending && !has_ended_on_disk(evidence);
        const bool has_no_next =
            status.state == RunState::waiting && status.reason == k_no_next_link;
        const bool has_answer = std::holds_alternative<Job>(evidence.slurm) ||
                                std::holds_alternative<NoSuchJob>(evidence.slurm);
        if (!(is_over || has_no_next) || !has_answer || (evidence.next && !next_failed(evidence)) ||
            !evidence.job || !evidence.run || !evidence.run->request.chain || evidence.stop) {
            return false;
        }
        std::vector<LinkPast> links = read_links(m_services.store, evidence.key, evidence.link);
        if (is_over) {
            links.back().ending = status.ending;
        }
        if (evidence.next) {
            LinkPast failed;
            failed.link = LinkNumber{evidence.link.value + 1};
            failed.ending = Ending{static_cast<int>(ExitStatus::lost), Cause::lost, "", m_now};
            links.push_back(failed);
        }
        const Verdict verdict = decide_next(evidence.run->request, links, m_now);
        if (verdict.decision == Verdict::Decision::over) {
            end(status, *verdict.ending);
        }
        if (verdict.decision != Verdict::Decision::next_link) {
            return false;
        }
        NextLink next;
        next.link = LinkNumber{links.back().link.value + 1};
        next.length = next_length(evidence.run->request, links, m_now);
        next.pause = verdict.pause;
        next.exclude = avoidable(*m_cluster, evidence.run->request, verdict.exclude);
        const auto job =
            submit_link(m_services.store, *m_cluster, m_services.clock, *evidence.run, next);
        if (!job && job.error().kind == Error::Kind::stopped) {
            end(status,
                {static_cast<int>(ExitStatus::stopped), Cause::cancelled, job.error().text, m_now});
            return false;
        }
        status.state = RunState::waiting;
        status.ending.reset();
        status.reason = k_no_next_link;
        if (job) {
            status.link = next.link;
            status.job = LinkJob{evidence.run->cluster, *job, m_now, /*batch=*/true};
            status.reason = "";
        }
        return true;
    }

    /// The next link's job died before it could record anything.
    static bool next_failed(const Evidence& evidence)
    {
        const auto* job = std::get_if<Job>(&evidence.next_slurm);
        return job != nullptr && is_over(job->state) && job->state != JobState::cancelled;
    }

    static void end(RunStatus& status, const Ending& ending)
    {
        status.state = RunState::ended;
        status.ending = ending;
        status.reason = "";
    }

    /// Cancels jobs for a stop request that was not delivered to Slurm. A running job's supervisor
    /// reads the request itself.
    void withdraw(const Evidence& evidence)
    {
        const bool is_old = evidence.stop && m_now - evidence.stop->at > k_stopper_at_work;
        for (const SlurmAnswer* answer : {&evidence.slurm, &evidence.next_slurm}) {
            const auto* job = std::get_if<Job>(answer);
            if (is_old && job != nullptr && job->state == JobState::pending) {
                (void)m_cluster->cancel(job->id);
            }
        }
    }

    /// Ends an allocation without a supervisor; true if its GPUs are free. A supervisor that merely
    /// can't write would be killed by this, so it is never done while the directory is not
    /// writable.
    bool end_allocation(const Evidence& evidence)
    {
        // Not empty: a full disk takes an empty file.
        return m_services.store.write(layout::active(evidence.key), "\n") &&
               m_cluster->complete(evidence.job->job, static_cast<int>(ExitStatus::lost));
    }

    RunStatus concluded(RunStatus status)
    {
        const bool is_active =
            std::binary_search(m_active.begin(), m_active.end(), status.key, std::greater<>());
        if (is_active && status.state == RunState::ended && status.ending) {
            forget_active(m_services.store, status.key);
        }
        if (status.state == RunState::waiting && status.reason == k_begin_time &&
            m_services.store.size(held_json(status.key))) {
            status.reason = k_no_ticket;
            status.expected_start.reset();
        }
        return status;
    }

    const StatusSources& m_services;
    Time m_now;
    std::vector<RunKey> m_active; ///< newest first
    Cluster* m_cluster = nullptr;
    std::string m_silent;
    std::optional<std::vector<Job>> m_own_jobs;
};

} // namespace

RunStatuses query_status(const StatusSources& services, const std::vector<RunKey>& keys,
                         SlurmQuery query)
{
    return StatusQuery(services).query_status(keys, query);
}

RunStatus query_run(const StatusSources& services, const RunKey& key, SlurmQuery query)
{
    return query_status(services, {key}, query).runs.front();
}

} // namespace gpuq
