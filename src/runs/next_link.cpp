// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/next_link.h"

#include "core/layout.h"
#include "runs/plan.h"
#include "runs/record.h"
#include "runs/script.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

using std::chrono::minutes;

Result<LinkJob> recorded_job(Store& store, const RunKey& key, LinkNumber link)
{
    TRY_ASSIGN(const std::string text, store.read(layout::job_json(key, link)));
    return link_job_from_json(text);
}

/// Jobs of this link that are not over, the oldest first.
Result<std::vector<JobId>> jobs_of_link(Cluster& cluster, const RunKey& key, LinkNumber link)
{
    TRY_ASSIGN(const std::vector<Job> jobs, cluster.own_jobs());
    std::vector<JobId> found;
    for (const Job& job : jobs) {
        if (!is_over(job.state) && job.comment == job_comment(key, link)) {
            found.push_back(job.id);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

JobSpec spec_of_link(const Run& run, const NextLink& next, const std::string& root)
{
    JobSpec spec = job_spec(run.request);
    spec.comment = job_comment(run.key, next.link);
    spec.output = fmt::format("{}/{}", root, layout::slurm_log(run.key, next.link));
    spec.walltime = std::max(minutes{1}, std::chrono::ceil<minutes>(next.length));
    spec.after_ok.reset();
    spec.after_any = next.after;
    spec.pause = next.pause;
    spec.exclude = next.exclude;
    return spec;
}

/// The first to write it down wins.
Result<JobId> record(Store& store, Cluster& cluster, const Run& run, const NextLink& next,
                     JobId job, Time now)
{
    const LinkJob link{run.cluster, job, now, /*batch=*/true, next.resumed};
    const auto written = store.write_once(layout::job_json(run.key, next.link), to_json(link));
    if (!written && written.error().kind == Error::Kind::busy) {
        TRY_ASSIGN(const LinkJob other, recorded_job(store, run.key, next.link));
        if (other.job != job) {
            (void)cluster.cancel(job); // should this fail: the claim is the other's, or ours
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
            links.back().ending = ending_before(journal);
        }
        links.push_back(link_past(link, journal));
        const auto job = recorded_job(store, key, link);
        links.back().resumed = job && job->resumed;
    }
    return links;
}

Result<JobId> submit_link(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                          const NextLink& next)
{
    if (const auto job = recorded_job(store, run.key, next.link)) {
        return job->job;
    }
    TRY_ASSIGN(const std::vector<JobId> there, jobs_of_link(cluster, run.key, next.link));
    if (!there.empty()) {
        for (auto extra = there.begin() + 1; extra != there.end(); ++extra) {
            (void)cluster.cancel(*extra);
        }
        return record(store, cluster, run, next, there.front(), clock.now());
    }
    TRY(store.make_dir(layout::link_dir(run.key, next.link)));
    const JobSpec spec = spec_of_link(run, next, store.root());
    const std::string script = batch_script(
        {run.request.chain->supervisor, store.root(), run.key, next.link}, run.request, spec);
    TRY_ASSIGN(const JobId job, cluster.submit(spec, script, run.environment));
    return record(store, cluster, run, next, job, clock.now());
}

Result<void> withdraw_link(Store& store, Cluster& cluster, const Run& run, LinkNumber link)
{
    if (const auto job = recorded_job(store, run.key, link)) {
        TRY(cluster.cancel(job->job));
        // The link that ran last is the run's newest again.
        TRY(store.remove(layout::job_json(run.key, link)));
        (void)store.remove(layout::link_dir(run.key, link));
        return {};
    }
    TRY_ASSIGN(const std::vector<JobId> there, jobs_of_link(cluster, run.key, link));
    for (const JobId job : there) {
        TRY(cluster.cancel(job));
    }
    return {};
}

} // namespace gpuq
