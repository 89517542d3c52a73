// SPDX-License-Identifier: GPL-2.0-or-later
// A submission survives lost responses. The run is recorded on disk before the first attempt. If
// the response to an attempt is lost, the user's jobs are polled for the run's key, until its job
// is found and adopted, or can no longer appear and the next attempt is made.
#include "runs/submission.h"

#include "core/comment.h"
#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/connect_keys.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/notebook.h"
#include "runs/records/record.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

constexpr LinkNumber k_first{1};
constexpr std::chrono::milliseconds k_between_questions{1000};

/// A request whose response was lost may still be in progress in the controller. After two of
/// Slurm's message timeouts (slurm.conf(5), MessageTimeout, 10 s by default) it has either made a
/// job or failed.
constexpr std::chrono::seconds k_in_flight{20};

Result<void> record_job(Store& store, const Run& run, JobId job, bool batch, Time now)
{
    const LinkJob link{run.cluster, job, now, batch};
    TRY(store.write(layout::job_json(run.key, k_first), to_json(link)));
    return store.write(layout::job_index(run.cluster, job), run.key.text() + "\n");
}

std::optional<Job> job_with_key(const std::vector<Job>& jobs, const RunKey& key)
{
    const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) {
        return !is_over(job.state) && link_in_comment(job.comment) == job_comment(key);
    });
    return found == jobs.end() ? std::nullopt : std::optional(*found);
}

/// Creates runs/KEY: run.json and the entry in index/active are on disk when this returns.
Result<void> record_run(Store& store, const Submission& submission, const std::string& snapshot)
{
    const Run& run = submission.run;
    std::vector<Store::NewFile> files = {{layout::run_json(run.key), to_json(run)},
                                         {layout::active(run.key), ""}};
    if (!submission.idle_rules.empty()) {
        files.push_back({idle_rules_json(run.key), submission.idle_rules});
    }
    if (!submission.credentials.empty()) {
        files.push_back({credential_plan_json(run.key), submission.credentials});
    }
    if (!snapshot.empty()) {
        files.push_back({layout::snapshot(run.key), snapshot});
    }
    TRY(store.write_together(files));
    if (submission.store_ticket) {
        submission.store_ticket();
    }
    TRY(store.make_dir(layout::inbox(run.key)));
    return store.make_dir(layout::link_dir(run.key, k_first));
}

/// One attempt: starts at once if possible, else submits to the queue.
Result<Submitted> ask(Cluster& cluster, const Submission& submission,
                      const std::function<Result<void>(bool queued)>& record)
{
    Submitted submitted;
    if (submission.try_now) {
        const bool with_input = true; // its end signals that the client has received everything
        auto started = cluster.start_now(submission.spec, submission.step, with_input,
                                         [&record] { return record(false); });
        if (started) {
            submitted.job = started->job;
            submitted.process = started->process;
            return submitted;
        }
        if (started.error().kind != Error::Kind::busy) {
            return std::move(started).error();
        }
        submitted.not_now = started.error().text;
    }
    TRY(record(true));
    TRY_ASSIGN(submitted.job,
               cluster.submit(submission.spec, submission.script, submission.run.environment));
    submitted.batch = true;
    return submitted;
}

/// Repeats the submission until its result is known, also after lost responses.
class Inquiry {
public:
    Inquiry(Store& store, Cluster& cluster, Clock& clock, const Submission& submission,
            const Patience& patience)
        : m_store(store)
        , m_cluster(cluster)
        , m_clock(clock)
        , m_submission(submission)
        , m_patience(patience)
        , m_begin(clock.steady())
    {
    }

    Result<Submitted> run()
    {
        while (true) {
            auto answer =
                ask(m_cluster, m_submission, [this](bool queued) { return record(queued); });
            if (answer || answer.error().kind != Error::Kind::unreachable) {
                return answer;
            }
            m_patience.notice(answer.error().text);
            snapshot_before_waiting();
            TRY_ASSIGN(auto found, find_submitted(answer.error()));
            if (found) {
                return *std::move(found);
            }
        }
    }

private:
    /// Polls the user's jobs for the key. Returns the job if it was made after all, or nothing once
    /// it is certain that none was.
    Result<std::optional<Submitted>> find_submitted(const Error& lost)
    {
        std::optional<std::chrono::steady_clock::time_point> first_answer;
        while (m_clock.steady() - m_begin < m_patience.limit) {
            if (auto jobs = m_cluster.own_jobs()) {
                first_answer = first_answer.value_or(m_clock.steady());
                if (auto job = job_with_key(*jobs, m_submission.run.key)) {
                    TRY_ASSIGN(auto adopted, adopt(*job));
                    return std::optional(std::move(adopted));
                }
                if (m_clock.steady() - *first_answer >= k_in_flight) {
                    return std::optional<Submitted>();
                }
            }
            if (!m_patience.pause(k_between_questions)) {
                break;
            }
        }
        return lost;
    }

    /// A batch job is kept as it is. An allocation has lost its step: it is replaced by a batch
    /// job.
    Result<Submitted> adopt(const Job& job)
    {
        if (job.batch) {
            Submitted submitted;
            submitted.job = job.id;
            submitted.batch = true;
            return submitted;
        }
        TRY(m_cluster.complete(job.id, static_cast<int>(ExitStatus::internal)));
        Submission queued = m_submission;
        queued.try_now = false;
        return ask(m_cluster, queued, [this](bool queued_now) { return record(queued_now); });
    }

    /// Records the request before it is sent to Slurm.
    Result<void> record(bool queued)
    {
        std::string snapshot;
        if (m_submission.take_snapshot && !m_has_snapshot &&
            (queued || m_submission.snapshot_at_once)) {
            TRY_ASSIGN(snapshot, m_submission.take_snapshot());
            m_has_snapshot = true;
        }
        if (!m_recorded) {
            TRY(record_run(m_store, m_submission, snapshot));
            m_recorded = true;
            return {};
        }
        return keep(snapshot);
    }

    /// Otherwise it would contain edits made while Slurm does not respond. After a failure it is
    /// taken later: a job may exist now, so the submission must not end.
    void snapshot_before_waiting()
    {
        if (m_submission.take_snapshot && m_recorded && !m_has_snapshot) {
            const auto snapshot = m_submission.take_snapshot();
            m_has_snapshot = snapshot && keep(*snapshot);
        }
    }

    Result<void> keep(const std::string& snapshot)
    {
        return snapshot.empty() ? Result<void>()
                                : m_store.write(layout::snapshot(m_submission.run.key), snapshot);
    }

    Store& m_store;
    Cluster& m_cluster;
    Clock& m_clock;
    const Submission& m_submission;
    const Patience& m_patience;
    std::chrono::steady_clock::time_point m_begin;
    bool m_recorded = false;
    bool m_has_snapshot = false;
};

void leave_a_stop_request(Store& store, const Run& run, Time now)
{
    const StopRequest request{fmt::format("{}@{} (gave up waiting for Slurm)", run.user, run.host),
                              now};
    // The state directory was writable a moment ago; if it no longer is, exit status 120 still
    // reports the failure.
    (void)store.write(layout::inbox(run.key) + "/" + layout::k_stop_request, to_json(request));
}

} // namespace

void forget_run(Store& store, const RunKey& key)
{
    forget_connect_keys(store, key); // also a notebook's token
    for (const std::string& path :
         {layout::active(key), notebook_json(key), layout::run_json(key), layout::inbox(key),
          layout::job_json(key, k_first), layout::snapshot(key), idle_rules_json(key),
          credential_plan_json(key), layout::link_dir(key, k_first), layout::run_dir(key)}) {
        (void)store.remove(path); // a remaining file is harmless: it is a run without a request
    }
}

Result<Submitted> submit_run(Store& store, Cluster& cluster, Clock& clock,
                             const Submission& submission, const Patience& patience)
{
    auto submitted = Inquiry(store, cluster, clock, submission, patience).run();
    if (!submitted) {
        if (submitted.error().kind == Error::Kind::unreachable) {
            leave_a_stop_request(store, submission.run, clock.now());
        }
        return submitted;
    }
    // Without this file the run continues, and is found by its comment: no reason to end it.
    (void)record_job(store, submission.run, submitted->job, submitted->batch, clock.now());
    return submitted;
}

} // namespace gpuq
