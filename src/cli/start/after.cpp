// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/after.h"

#include "cli/queries/plain_target.h"
#include "core/quote.h"
#include "ports/cluster.h"
#include "ports/store.h"
#include "runs/chain.h"
#include "runs/evidence.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

namespace gpuq::cli {
namespace {

Error no_start(const std::string& word, const std::string& why)
{
    return fail(Error::Kind::usage, fmt::format("--after {}: {}", word, why));
}

Error never_after(const std::string& word, std::string_view noun, JobId job, const Ending& ending)
{
    return no_start(word, fmt::format("{} {} has already ended with exit status {}, so nothing "
                                      "would start after it; see gpuq show {}",
                                      noun, job.value, ending.status, job.value));
}

/// Whether more jobs of the run than its current one are to be expected.
bool has_more_links(const Run& run)
{
    constexpr int k_unknown = 2;
    return run.request.chain && expected_links(run.request, {}, Time{}).value_or(k_unknown) > 1;
}

Result<std::optional<JobId>> job_of_run(Services& services, Store& store, const std::string& word,
                                        const RunKey& key)
{
    const Evidence evidence = read_evidence(store, key);
    if (!evidence.run || !evidence.job) {
        return no_start(word, "its job is not on record; see gpuq show");
    }
    const LinkJob& link = *evidence.job;
    if (const auto ending = read_ending(store, key)) {
        return ending->status == 0
                   ? Result<std::optional<JobId>>(std::nullopt)
                   : Result<std::optional<JobId>>(never_after(word, "run", link.job, *ending));
    }
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const std::string here, cluster->name());
    if (link.cluster != here) {
        return no_start(word, fmt::format("run {} is on cluster {}, and a job can only wait for "
                                          "others of its own, {}",
                                          link.job.value, link.cluster, here));
    }
    if (has_more_links(*evidence.run)) {
        return no_start(word, fmt::format("run {} continues in several jobs, and Slurm can wait "
                                          "for one only: gpuq wait {} && gpuq run ...",
                                          link.job.value, shell_quoted(word)));
    }
    return std::optional(link.job);
}

} // namespace

Result<std::optional<JobId>> job_to_await(Services& services, Store& store, const std::string& word)
{
    TRY_ASSIGN(const Target target, find_target(services, store, word));
    if (const auto* key = std::get_if<RunKey>(&target)) {
        return job_of_run(services, store, word, *key);
    }
    const RunStatus& plain = std::get<RunStatus>(target);
    const JobId job = plain.job->job;
    if (!plain.ending) {
        return std::optional(job);
    }
    return plain.ending->status == 0
               ? Result<std::optional<JobId>>(std::nullopt)
               : Result<std::optional<JobId>>(never_after(word, "job", job, *plain.ending));
}

} // namespace gpuq::cli
