// SPDX-License-Identifier: GPL-2.0-or-later
// Reads the evidence of each run from disk, queries Slurm once if a run needs it, derives each
// status (runs/status.h) and repairs inconsistent records. Several clients may do this at the same
// time: records are written with write_once, and submit_link makes only one job.
#include "runs/look.h"

#include "core/comment.h"
#include "core/layout.h"
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

Result<Queue> ask_slurm(Cluster& cluster)
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

bool is_job_of(const Evidence& seen, const Job& job)
{
    return seen.job ? job.id == seen.job->job && may_be_of(seen.key, job.comment)
                    : without_notes(job.comment) == job_comment(seen.key, seen.link);
}

/// The job of a run, by its id or by the key in its comment; among several the active one, else the
/// newest.
const Job* job_of(const Queue& queue, const Evidence& seen)
{
    const auto rank = [](const Job& job) { return std::pair(!is_over(job.state), job.id); };
    const Job* best = nullptr;
    for (const Job& job : queue.jobs) {
        if (is_job_of(seen, job) && (best == nullptr || rank(job) > rank(*best))) {
            best = &job;
        }
    }
    return best;
}

std::string cluster_of(const Evidence& seen)
{
    if (seen.job) {
        return seen.job->cluster;
    }
    return seen.run ? seen.run->cluster : std::string();
}

SlurmAnswer answer_for(const Queue& queue, const Evidence& seen)
{
    const std::string cluster = cluster_of(seen);
    if (!cluster.empty() && cluster != queue.cluster) {
        return NoAnswer{fmt::format("it belongs to cluster '{}'", cluster)};
    }
    const Job* job = job_of(queue, seen);
    return job == nullptr ? SlurmAnswer(NoSuchJob{}) : SlurmAnswer(*job);
}

PastAnswer ask_accounting(const LookDoors& doors, const RunKey& key, JobId id)
{
    const auto accounting = doors.accounting();
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

class Looking {
public:
    explicit Looking(const LookDoors& doors)
        : m_doors(doors)
        , m_now(doors.clock.now())
    {
        if (auto active = active_runs(doors.store)) {
            m_active = *std::move(active);
        }
    }

    Looked look(const std::vector<RunKey>& keys, Ask ask)
    {
        std::vector<Evidence> all;
        all.reserve(keys.size());
        for (const RunKey& key : keys) {
            all.push_back(read_evidence(m_doors.store, key));
        }
        const bool needed = std::any_of(all.begin(), all.end(), [this](const Evidence& seen) {
            return needs_slurm(seen, m_now);
        });
        if (ask == Ask::if_needed && needed) {
            ask_about(all);
        }
        Looked looked;
        looked.slurm_silent = m_silent;
        looked.own_jobs = std::move(m_own_jobs);
        for (Evidence& seen : all) {
            looked.runs.push_back(conclude_and_repair(seen));
        }
        return looked;
    }

private:
    void ask_about(std::vector<Evidence>& all)
    {
        const auto cluster = m_doors.cluster();
        const auto queue = cluster ? ask_slurm(**cluster) : Result<Queue>(cluster.error());
        m_cluster = cluster ? *cluster : nullptr;
        m_silent = queue ? "" : queue.error().text;
        for (Evidence& seen : all) {
            if (!needs_slurm(seen, m_now)) {
                continue;
            }
            if (queue) {
                take_answer(*queue, seen);
            } else {
                seen.slurm = NoAnswer{queue.error().text};
            }
        }
        if (queue) {
            m_own_jobs = queue->jobs;
        }
    }

    void take_answer(const Queue& queue, Evidence& seen)
    {
        SlurmAnswer answer = answer_for(queue, seen);
        const Job* job = std::get_if<Job>(&answer);
        if (std::holds_alternative<NoSuchJob>(answer) || (job != nullptr && is_over(job->state))) {
            // The supervisor may have recorded the end between the reading and the query.
            const Evidence before = std::exchange(seen, read_evidence(m_doors.store, seen.key));
            read_slurm_log(seen);
            if (seen.link != before.link || (seen.job && seen.job != before.job)) {
                // The answer is about another job.
                seen.slurm = NoAnswer{"it has just continued in another job"};
                return;
            }
        }
        if (job != nullptr && !seen.job) {
            seen.job =
                LinkJob{queue.cluster, job->id, job->submitted_at.value_or(m_now), job->batch};
        }
        seen.slurm = std::move(answer);
        if (seen.next) {
            const auto next =
                std::find_if(queue.jobs.begin(), queue.jobs.end(),
                             [&](const Job& one) { return one.id == seen.next->job; });
            seen.next_slurm = next == queue.jobs.end() ? forgotten_next(seen) : SlurmAnswer(*next);
        }
        if (needs_step(seen, m_now)) {
            const auto step = m_cluster->has_first_step(seen.job->job);
            seen.step_is_over = step && !*step;
        }
        if (needs_accounting(seen)) {
            seen.past = ask_accounting(m_doors, seen.key, seen.job->job);
        }
    }

    /// The result for a next link's job that Slurm no longer knows: it ended minutes ago or
    /// earlier, before it could record anything. Accounting distinguishes a cancelled job, which
    /// ends the run, from a failed one.
    SlurmAnswer forgotten_next(const Evidence& seen)
    {
        const PastAnswer past = ask_accounting(m_doors, seen.key, seen.next->job);
        Job job;
        job.id = seen.next->job;
        job.state = JobState::node_fail;
        if (const auto* known = std::get_if<PastJob>(&past); known && is_over(known->state)) {
            job.state = known->state;
            return job;
        }
        const bool waited_enough = m_now - seen.next->submitted_at > k_accounting_patience;
        return std::holds_alternative<NoSuchJob>(past) || waited_enough
                   ? SlurmAnswer(job)
                   : NoAnswer{"Slurm has forgotten the job of the next link, and accounting does "
                              "not show yet how it ended"};
    }

    void read_slurm_log(Evidence& seen)
    {
        const auto text = m_doors.store.read(layout::slurm_log(seen.key, seen.link));
        seen.slurm_log = text ? *text : "";
    }

    RunStatus conclude_and_repair(const Evidence& seen)
    {
        adopt(seen);
        withdraw(seen);
        if (is_abandoned(seen, m_now) && end_allocation(seen)) {
            Evidence dead = seen;
            if (seen.step_is_over && seen.run && seen.run->request.chain) {
                auto& job = std::get<Job>(dead.slurm);
                job.state = JobState::failed;
                job.exit_status = static_cast<int>(ExitStatus::lost);
                return conclude_or_go_on(dead);
            }
            dead.ended = Ending{
                static_cast<int>(ExitStatus::lost), Cause::lost,
                seen.step_is_over ? "its supervisor died" : "its supervisor never started", m_now};
            (void)m_doors.store.write_once(layout::ended_json(seen.key), to_json(*dead.ended));
            return settled(conclude(dead, m_now));
        }
        return conclude_or_go_on(seen);
    }

    RunStatus conclude_or_go_on(const Evidence& seen)
    {
        RunStatus status = conclude(seen, m_now);
        if (lets_go_on(seen, status)) {
            return status;
        }
        if (status.state == RunState::ended && status.ending && needs_slurm(seen, m_now)) {
            (void)m_doors.store.write_once(layout::ended_json(seen.key), to_json(*status.ending));
        }
        return settled(std::move(status));
    }

    /// Records a job that its client did not, because it died or the response was lost.
    void adopt(const Evidence& seen)
    {
        if (seen.job && !seen.job_recorded && !may_be_asked_for_again(seen, m_now)) {
            (void)m_doors.store.write_once(layout::job_json(seen.key, seen.link),
                                           to_json(*seen.job));
            (void)m_doors.store.write_once(layout::job_index(seen.job->cluster, seen.job->job),
                                           seen.key.text() + "\n");
        }
    }

    /// Submits the next link of a chain if that has not been done: its nodes may be unable to, or
    /// its supervisor died. True if the chain continues.
    bool lets_go_on(const Evidence& seen, RunStatus& status)
    {
        const bool is_over =
            status.state == RunState::ended && status.ending && !has_ended_on_disk(seen);
        const bool has_no_next =
            status.state == RunState::waiting && status.reason == k_no_next_link;
        const bool has_answer = std::holds_alternative<Job>(seen.slurm) ||
                                std::holds_alternative<NoSuchJob>(seen.slurm);
        if (!(is_over || has_no_next) || !has_answer || (seen.next && !next_failed(seen)) ||
            !seen.job || !seen.run || !seen.run->request.chain || seen.stop) {
            return false;
        }
        std::vector<LinkPast> links = read_links(m_doors.store, seen.key, seen.link);
        if (is_over) {
            links.back().ending = status.ending;
        }
        if (seen.next) {
            LinkPast failed;
            failed.link = LinkNumber{seen.link.value + 1};
            failed.ending = Ending{static_cast<int>(ExitStatus::lost), Cause::lost, "", m_now};
            links.push_back(failed);
        }
        const Verdict verdict = judge(seen.run->request, links, m_now);
        if (verdict.go == Verdict::Go::over) {
            end(status, *verdict.ending);
        }
        if (verdict.go != Verdict::Go::on) {
            return false;
        }
        NextLink next;
        next.link = LinkNumber{links.back().link.value + 1};
        next.length = next_length(seen.run->request, links, m_now);
        next.pause = verdict.pause;
        next.exclude = avoidable(*m_cluster, seen.run->request, verdict.exclude);
        const auto job = submit_link(m_doors.store, *m_cluster, m_doors.clock, *seen.run, next);
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
            status.job = LinkJob{seen.run->cluster, *job, m_now, /*batch=*/true};
            status.reason = "";
        }
        return true;
    }

    /// The next link's job died before it could record anything.
    static bool next_failed(const Evidence& seen)
    {
        const auto* job = std::get_if<Job>(&seen.next_slurm);
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
    void withdraw(const Evidence& seen)
    {
        const bool is_old = seen.stop && m_now - seen.stop->at > k_stopper_at_work;
        for (const SlurmAnswer* answer : {&seen.slurm, &seen.next_slurm}) {
            const auto* job = std::get_if<Job>(answer);
            if (is_old && job != nullptr && job->state == JobState::pending) {
                (void)m_cluster->cancel(job->id);
            }
        }
    }

    /// Ends an allocation without a supervisor; true if its GPUs are free. A supervisor that merely
    /// can't write would be killed by this, so it is never done while the directory is not
    /// writable.
    bool end_allocation(const Evidence& seen)
    {
        return m_doors.store.write(layout::active(seen.key), "") &&
               m_cluster->complete(seen.job->job, static_cast<int>(ExitStatus::lost));
    }

    RunStatus settled(RunStatus status)
    {
        const bool is_active =
            std::binary_search(m_active.begin(), m_active.end(), status.key, std::greater<>());
        if (is_active && status.state == RunState::ended && status.ending) {
            forget_active(m_doors.store, status.key);
        }
        if (status.state == RunState::waiting && status.reason == k_begin_time &&
            m_doors.store.size(held_json(status.key))) {
            status.reason = k_no_ticket;
            status.expected_start.reset();
        }
        return status;
    }

    const LookDoors& m_doors;
    Time m_now;
    std::vector<RunKey> m_active; ///< newest first
    Cluster* m_cluster = nullptr;
    std::string m_silent;
    std::optional<std::vector<Job>> m_own_jobs;
};

} // namespace

Looked look(const LookDoors& doors, const std::vector<RunKey>& keys, Ask ask)
{
    return Looking(doors).look(keys, ask);
}

RunStatus look_at(const LookDoors& doors, const RunKey& key, Ask ask)
{
    return look(doors, {key}, ask).runs.front();
}

} // namespace gpuq
