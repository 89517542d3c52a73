// SPDX-License-Identifier: GPL-2.0-or-later
// A link may get two jobs if a response is lost or two processes submit at the same time. Two files
// resolve this: job.json, whose first writer wins, and the claim, which lets only one job run the
// program. Surplus jobs are cancelled.
#include "runs/next_link.h"

#include "core/comment.h"
#include "core/exit_status.h"
#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/plan.h"
#include "runs/queues/queues.h"
#include "runs/records/heartbeat.h"
#include "runs/records/record.h"
#include "runs/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gpuq {
namespace {

using std::chrono::minutes;

Result<LinkJob> recorded_job(Store& store, const RunKey& key, LinkNumber link)
{
    TRY_ASSIGN(const std::string text, store.read(layout::job_json(key, link)));
    return link_job_from_json(text);
}

/// The link's jobs in Slurm, oldest first.
struct JobsOfLink {
    std::vector<JobId> alive;
    std::vector<JobId> pending; ///< of those alive
    std::vector<JobId> cancelled;
};
Result<JobsOfLink> jobs_of_link(Cluster& cluster, const RunKey& key, LinkNumber link)
{
    TRY_ASSIGN(const std::vector<Job> jobs, cluster.own_jobs());
    JobsOfLink found;
    for (const Job& job : jobs) {
        if (link_in_comment(job.comment) != job_comment(key, link)) {
            continue;
        }
        if (!is_over(job.state)) {
            found.alive.push_back(job.id);
            if (job.state == JobState::pending) {
                found.pending.push_back(job.id);
            }
        } else if (job.state == JobState::cancelled) {
            found.cancelled.push_back(job.id);
        }
    }
    std::sort(found.alive.begin(), found.alive.end());
    std::sort(found.pending.begin(), found.pending.end());
    return found;
}

/// The job that runs or ran the link; no other job can run it.
std::optional<JobId> owner_of(Store& store, const RunKey& key, LinkNumber link)
{
    const auto text = store.read(layout::claim(key, link));
    JobId owner{};
    const bool is_number =
        text &&
        std::from_chars(text->data(), text->data() + text->size(), owner.value).ec == std::errc{};
    return is_number ? std::optional(owner) : std::nullopt;
}

bool has_claimed(Store& store, const RunKey& key, LinkNumber link, JobId job)
{
    return owner_of(store, key, link) == job;
}

JobSpec spec_of_link(const Run& run, const NextLink& next, const std::string& root)
{
    JobSpec spec = job_spec(run.request);
    spec.comment = submitted_comment(run, next.link);
    spec.output = fmt::format("{}/{}", root, layout::slurm_log(run.key, next.link));
    spec.walltime = std::max(minutes{1}, std::chrono::ceil<minutes>(next.length));
    spec.after_ok.reset();
    spec.after_any = next.after;
    spec.pause = next.pause;
    spec.exclude = next.exclude;
    return spec;
}

Result<JobId> submit(Store& store, Cluster& cluster, const Run& run, const NextLink& next)
{
    TRY(store.make_dir(layout::link_dir(run.key, next.link)));
    const JobSpec spec = spec_of_link(run, next, store.root());
    const std::string script = batch_script(
        {run.request.chain->supervisor, store.root(), run.key, next.link}, run.request, spec);
    return cluster.submit(spec, script, run.environment);
}

LinkJob link_job(const Run& run, const NextLink& next, JobId job, Time now)
{
    return {run.cluster, job, now, /*batch=*/true, next.resumed};
}

/// Records a job that replaces the link's earlier one.
Result<void> record_anew(Store& store, const Run& run, const NextLink& next, JobId job, Time now)
{
    TRY(store.write(layout::job_json(run.key, next.link), to_json(link_job(run, next, job, now))));
    (void)store.write(layout::job_index(run.cluster, job), run.key.text() + "\n");
    return {};
}

/// Cancels jobs that had not started, except one that has claimed the link since. If a request
/// fails, the claim lets only one of them run the program.
void cancel_surplus(Store& store, Cluster& cluster, const RunKey& key, LinkNumber link,
                    const std::vector<JobId>& pending)
{
    for (const JobId job : pending) {
        if (!has_claimed(store, key, link, job)) {
            (void)cluster.cancel(job);
        }
    }
}

/// The first process to write job.json wins, except that a job which has already claimed the link
/// is always its job.
Result<JobId> record(Store& store, Cluster& cluster, const Run& run, const NextLink& next,
                     JobId job, Time now)
{
    const std::string text = to_json(link_job(run, next, job, now));
    const std::string path = layout::job_json(run.key, next.link);
    auto written = store.write_once(path, text);
    if (!written && written.error().kind == Error::Kind::busy &&
        has_claimed(store, run.key, next.link, job)) {
        written = store.write(path, text);
    }
    if (!written && written.error().kind == Error::Kind::busy) {
        TRY_ASSIGN(const LinkJob other, recorded_job(store, run.key, next.link));
        if (other.job != job) {
            (void)cluster.cancel(job); // if this fails, only the job that claims the link runs it
        }
        return other.job;
    }
    TRY(written);
    (void)store.write(layout::job_index(run.cluster, job), run.key.text() + "\n");
    return job;
}

} // namespace

std::vector<LinkPast> read_links(Store& store, const RunKey& key, LinkNumber last)
{
    std::vector<LinkPast> links;
    for (LinkNumber link; link <= last; ++link.value) {
        const auto text = store.read(layout::journal(key, link));
        const auto journal = text ? parse_journal(*text) : std::vector<Event>{};
        if (!links.empty() && !links.back().ending) {
            // A later link exists, so this one has ended in some way.
            Ending ending = ending_before(journal).value_or(
                Ending{static_cast<int>(ExitStatus::lost), Cause::lost, "", Time::max(), true});
            ending.at = last_life(store, key, links.back().link, ending.at);
            if (ending.at != Time::max()) {
                links.back().ending = std::move(ending);
            }
        }
        links.push_back(link_past(link, journal));
        const auto job = recorded_job(store, key, link);
        links.back().resumed = job && job->resumed;
    }
    return links;
}

std::vector<std::string> avoidable(Cluster& cluster, const Request& request,
                                   const std::vector<std::string>& nodes)
{
    const auto queues = nodes.empty() ? Result<std::vector<Partition>>(std::vector<Partition>{})
                                      : cluster.partitions();
    for (const Partition& queue : queues ? *queues : std::vector<Partition>{}) {
        const int others = queue.most_nodes.value_or(0) - static_cast<int>(nodes.size());
        if (names_queue(request.queue, queue.name) && others >= request.nodes) {
            return nodes;
        }
    }
    return {};
}

Time last_life(Store& store, const RunKey& key, LinkNumber link, Time latest)
{
    const auto text = store.read(layout::journal(key, link));
    const auto journal = text ? parse_journal(*text) : std::vector<Event>{};
    Time last{};
    for (const Event& event : journal) {
        last = std::max(last, event.at);
    }
    const auto beat_text = store.read(layout::heartbeat(key, link));
    if (const auto beat = beat_text ? parse_heartbeat(*beat_text) : std::nullopt) {
        last = std::max(last, beat->at + k_heartbeat_period);
    }
    return last == Time{} ? latest : std::min(last, latest);
}

Result<JobId> submit_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                          const NextLink& next)
{
    if (const auto job = recorded_job(store, run.key, next.link)) {
        return job->job;
    }
    TRY_ASSIGN(JobsOfLink there, jobs_of_link(cluster, run.key, next.link));
    auto& alive = there.alive;
    if (!alive.empty()) {
        const auto owner = std::find_if(alive.begin(), alive.end(), [&](JobId job) {
            return has_claimed(store, run.key, next.link, job);
        });
        std::iter_swap(alive.begin(), owner == alive.end() ? alive.begin() : owner);
        for (auto extra = alive.begin() + 1; extra != alive.end(); ++extra) {
            (void)cluster.cancel(*extra);
        }
        return record(store, cluster, run, next, alive.front(), clock.now());
    }
    if (!there.cancelled.empty() && !next.resumed) {
        return fail(Error::Kind::stopped, fmt::format("the job of its next link, {}, was cancelled",
                                                      there.cancelled.back().value));
    }
    if (const auto owner = owner_of(store, run.key, next.link)) {
        return record(store, cluster, run, next, *owner, clock.now());
    }
    TRY_ASSIGN(const JobId job, submit(store, cluster, run, next));
    return record(store, cluster, run, next, job, clock.now());
}

Result<JobId> replace_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                           const NextLink& next, JobId old)
{
    TRY_ASSIGN(const JobId job, submit(store, cluster, run, next));
    TRY(record_anew(store, run, next, job, clock.now()));
    (void)cluster.cancel(old); // if this fails, only one of them can claim the link
    return job;
}

Result<JobId> hold_link(Store& store, Cluster& cluster, Clock& clock, const Run& run, NextLink next)
{
    next.pause = k_held_for;
    next.after.reset();
    TRY(store.write(held_json(run.key), to_json(Held{next.link, clock.now()})));
    // An earlier call has made one if the response was lost. The caller's own job is running.
    TRY_ASSIGN(JobsOfLink there, jobs_of_link(cluster, run.key, next.link));
    TRY_ASSIGN(const JobId job, there.pending.empty() ? submit(store, cluster, run, next)
                                                      : Result<JobId>(there.pending.back()));
    TRY(record_anew(store, run, next, job, clock.now()));
    std::erase(there.pending, job);
    cancel_surplus(store, cluster, run.key, next.link, there.pending);
    return job;
}

Result<void> release_link(Store& store, Cluster& cluster, Clock& clock, const RunKey& key)
{
    const auto text = store.read(held_json(key));
    if (!text) {
        return {};
    }
    TRY_ASSIGN(const Held held, held_from_json(*text));
    TRY_ASSIGN(JobsOfLink there, jobs_of_link(cluster, key, held.link));
    if (!store.size(layout::claim(key, held.link))) {
        TRY_ASSIGN(const Run run, read_run(store, key));
        TRY_ASSIGN(const LinkJob old, recorded_job(store, key, held.link));
        NextLink next;
        next.link = held.link;
        next.resumed = old.resumed;
        next.length = next_length(
            run.request, read_links(store, key, LinkNumber{held.link.value - 1}), clock.now());
        TRY(replace_link(store, cluster, clock, run, next, old.job));
        std::erase(there.pending, old.job);
    }
    cancel_surplus(store, cluster, key, held.link, there.pending);
    return store.remove(held_json(key));
}

Result<void> withdraw_link(Store& store, Cluster& cluster, const Run& run, LinkNumber link)
{
    if (store.size(layout::claim(run.key, link))) {
        return {};
    }
    if (const auto job = recorded_job(store, run.key, link)) {
        TRY(cluster.cancel(job->job));
        // The link that ran last is the run's newest again.
        TRY(store.remove(layout::job_json(run.key, link)));
        (void)store.remove(layout::link_dir(run.key, link));
    }
    // There are others if the response to a request was lost.
    TRY_ASSIGN(const JobsOfLink there, jobs_of_link(cluster, run.key, link));
    for (const JobId other : there.alive) {
        TRY(cluster.cancel(other));
    }
    return {};
}

} // namespace gpuq
