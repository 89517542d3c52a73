// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/extension.h"

#include "cli/policy_ops/help_desk.h"
#include "cli/policy_ops/in_force.h"
#include "core/host_list.h"
#include "core/strings.h"
#include "core/walltime.h"
#include "policy/extend.h"
#include "policy/queue_partitions.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "report/ending_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gpuq::cli {
namespace {

using std::chrono::minutes;

/// The partitions of the policy that have one of these nodes.
std::set<std::string, std::less<>> partitions_with(const policy::Policy& policy,
                                                   const std::vector<std::string>& nodes)
{
    std::set<std::string, std::less<>> found;
    for (const policy::Queue& queue : policy.queues) {
        for (const policy::QueuePartition& one : policy::partitions_of(policy, queue)) {
            if (std::any_of(nodes.begin(), nodes.end(),
                            [&](const std::string& node) { return one.pool->has_node(node); })) {
                found.insert(one.partition);
            }
        }
    }
    return found;
}

/// False for a job that would not start even if these nodes were free.
bool may_start(const Job& job)
{
    static constexpr std::array<std::string_view, 5> k_own_reasons = {"Dependency", "BeginTime",
                                                                      "JobHeld", "QOS", "Assoc"};
    return job.state == JobState::pending && job.priority != 0U &&
           std::none_of(k_own_reasons.begin(), k_own_reasons.end(),
                        [&](std::string_view reason) { return job.reason.starts_with(reason); });
}

/// A job of another user that waits for the nodes of `held`; empty: none.
Result<std::string> waiting_job(Cluster& cluster, const policy::Policy& policy, const Job& held,
                                const std::vector<std::string>& nodes)
{
    TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
    if (!all.complete) {
        return fail(Error::Kind::denied, "Slurm hides other users' jobs from this account, so that "
                                         "it is not known whether one waits (PrivateData)");
    }
    const auto partitions = partitions_with(policy, nodes);
    for (const Job& job : all.jobs) {
        const auto wanted = split(job.partition, ",");
        if (job.uid != held.uid && may_start(job) &&
            std::any_of(wanted.begin(), wanted.end(),
                        [&](std::string_view name) { return partitions.contains(name); })) {
            return job.called.empty() ? std::to_string(job.id.value) : job.called;
        }
    }
    return std::string();
}

/// A reservation of one of these nodes that begins between now and `end`.
Result<void> check_reservations(Cluster& cluster, const std::vector<std::string>& nodes, Time now,
                                Time end)
{
    TRY_ASSIGN(const auto reservations, cluster.reservations());
    for (const Reservation& one : reservations) {
        const auto reserved = expand_hosts(one.nodes);
        const bool meets =
            !reserved || std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
                return std::find(reserved->begin(), reserved->end(), node) != reserved->end();
            });
        if (meets && one.start > now && one.start < end) {
            return fail(Error::Kind::denied, fmt::format("its nodes are reserved from {} ({})",
                                                         clock_text(one.start, now), one.name));
        }
    }
    return {};
}

Result<Job> running_job(Cluster& cluster, JobId id)
{
    TRY_ASSIGN(Job job, cluster.job(id));
    if (job.state != JobState::running || !job.started_at) {
        return fail(Error::Kind::denied, fmt::format("job {} does not run", id.value));
    }
    if (!job.walltime) {
        return fail(Error::Kind::denied, fmt::format("job {} has no time limit", id.value));
    }
    return job;
}

} // namespace

Result<Extension> extend_by_rule(Services& services, const Caller& caller, JobId id, minutes more)
{
    const auto policy = policy_in_force(services);
    if (!policy) {
        return fail(Error::Kind::denied,
                    "no policy is in force that extends running jobs (man gpuq-policy, extend)");
    }
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const Job job, running_job(*cluster, id));
    TRY(check_desk(*policy, caller, job, policy::DeskRight::extend));
    TRY_ASSIGN(const auto nodes, expand_hosts(job.nodes));
    policy::ExtendRequest request{job.qos, job.partition, *job.walltime, more, ""};
    const policy::ExtendRule* const rule = policy::extend_rule(*policy, job.qos);
    if (rule != nullptr && rule->unless_others_wait) {
        TRY_ASSIGN(request.waiting, waiting_job(*cluster, *policy, job, nodes));
    }
    if (const auto refusal = policy::refusal_of(*policy, request)) {
        return fail(Error::Kind::denied, *refusal);
    }
    const Extension extension{*job.walltime, *job.walltime + more};
    TRY(check_reservations(*cluster, nodes, services.clock().now(),
                           *job.started_at + extension.walltime));
    TRY(record_desk(services, caller, job, fmt::format("extend by {}", to_text(more))));
    TRY(cluster->set_walltime(id, extension.walltime));
    return extension;
}

} // namespace gpuq::cli
