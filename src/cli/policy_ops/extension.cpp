// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/extension.h"

#include "cli/policy_ops/help_desk.h"
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
#include <cstdint>
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

/// True for a job kept back by a limit of several users together, of which `held` has its part.
bool shares_its_limit(const Job& job, const Job& held)
{
    return (job.reason.starts_with("QOSGrp") && job.qos == held.qos) ||
           (job.reason.starts_with("AssocGrp") && job.account == held.account);
}

/// False for a job that would not start even if `held` ended.
bool may_start(const Job& job, const Job& held)
{
    static constexpr std::array<std::string_view, 5> k_own_reasons = {"Dependency", "BeginTime",
                                                                      "JobHeld", "QOS", "Assoc"};
    return job.state == JobState::pending && job.priority != 0U &&
           (shares_its_limit(job, held) ||
            std::none_of(k_own_reasons.begin(), k_own_reasons.end(),
                         [&](std::string_view reason) { return job.reason.starts_with(reason); }));
}

/// A job of another user that waits for the nodes of `held`; empty: none.
std::string waiting_job(const std::vector<Job>& jobs, const policy::Policy& policy, const Job& held,
                        const std::vector<std::string>& nodes)
{
    const auto partitions = partitions_with(policy, nodes);
    for (const Job& job : jobs) {
        const auto wanted = split(job.partition, ",");
        if (job.uid != held.uid && may_start(job, held) &&
            std::any_of(wanted.begin(), wanted.end(),
                        [&](std::string_view name) { return partitions.contains(name); })) {
            return job.called.empty() ? std::to_string(job.id.value) : job.called;
        }
    }
    return "";
}

/// That of the queue in which `held` runs, with `more` time for it.
policy::GpuTimeAhead time_ahead(const std::vector<Job>& jobs, const Job& held, minutes more,
                                Time now)
{
    policy::GpuTimeAhead ahead;
    const auto add = [&](const Job& job, minutes time) {
        const std::int64_t gpu_minutes = time.count() * job.gpus;
        ahead.all += gpu_minutes;
        ahead.user += job.uid == held.uid ? gpu_minutes : 0;
        ahead.account += job.account == held.account ? gpu_minutes : 0;
    };
    for (const Job& job : jobs) {
        const bool runs = job.state == JobState::running || job.state == JobState::suspended;
        if (runs && job.qos == held.qos && job.ends_at && *job.ends_at > now) {
            add(job, std::chrono::ceil<minutes>(*job.ends_at - now));
        }
    }
    add(held, more);
    return ahead;
}

/// Completes the request of a rule that depends on other jobs. At most one RPC.
Result<void> add_other_jobs(Cluster& cluster, const policy::Policy& policy, const Job& held,
                            const std::vector<std::string>& nodes, Time now,
                            policy::ExtendRequest& request)
{
    const policy::ExtendRule* const rule = policy::extend_rule(policy, held.qos);
    if (rule == nullptr || !(policy::depends_on_waiting(*rule, request.saved) ||
                             policy::limits_gpu_time_ahead(policy, held.qos))) {
        return {};
    }
    TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
    if (!all.complete) {
        return fail(Error::Kind::denied, "Slurm hides other users' jobs, on which the rule of the "
                                         "queue depends, from this account (PrivateData)");
    }
    request.waiting = waiting_job(all.jobs, policy, held, nodes);
    request.ahead = time_ahead(all.jobs, held, request.more, now);
    return {};
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

Result<Extension> extend_by_rule(Services& services, const policy::Policy& policy,
                                 const Caller& caller, JobId id, minutes more, bool saved)
{
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const Job job, running_job(*cluster, id));
    TRY(check_desk(policy, caller, job, policy::DeskRight::extend));
    TRY_ASSIGN(const auto nodes, expand_hosts(job.nodes));
    const Time now = services.clock().now();
    policy::ExtendRequest request{job.qos, job.partition, *job.walltime, more, ""};
    request.saved = saved && job.uid == caller.uid;
    TRY(add_other_jobs(*cluster, policy, job, nodes, now, request));
    if (const auto refusal = policy::refusal_of(policy, request)) {
        return fail(Error::Kind::denied, *refusal);
    }
    const Extension extension{*job.walltime, *job.walltime + more};
    TRY(check_reservations(*cluster, nodes, now, *job.started_at + extension.walltime));
    TRY(record_desk(services, caller, job, fmt::format("extend by {}", to_text(more))));
    TRY(cluster->set_walltime(id, extension.walltime));
    return extension;
}

} // namespace gpuq::cli
