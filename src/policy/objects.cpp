// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/objects.h"

#include "core/walltime.h"
#include "policy/lua.h"
#include "policy/queue_partitions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace gpuq::policy {
namespace {

using Kind = Object::Kind;
using Fields = std::map<std::string, std::string>;

std::string sorted(std::vector<std::string> names)
{
    std::sort(names.begin(), names.end());
    return fmt::format("{}", fmt::join(names, ","));
}

bool lends(const Policy& policy)
{
    return std::any_of(policy.pools.begin(), policy.pools.end(),
                       [](const Pool& pool) { return pool.lend.has_value(); });
}

/// A time as scontrol prints it: `00:15:00`, `1-00:00:00`.
std::string printed_time(seconds time)
{
    const auto days = std::chrono::floor<std::chrono::days>(time);
    const std::int64_t rest = (time - days).count();
    const std::string clock =
        fmt::format("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    return days.count() > 0 ? fmt::format("{}-{}", days.count(), clock) : clock;
}

void add_settings(const Policy& policy, std::vector<Object>& objects)
{
    seconds min_run{0};
    for (const Pool& pool : policy.pools) {
        min_run = std::max(min_run, pool.lend ? pool.lend->min_run.value : seconds{0});
    }
    const auto half_life = std::chrono::duration_cast<minutes>(policy.fair_share.half_life.value);
    const int line = policy.fair_share.half_life.line;
    const auto set = [&](std::string name, std::string value) {
        objects.push_back({Kind::setting, std::move(name), {{"value", std::move(value)}}, line});
    };
    set("EnforcePartLimits", "ANY");
    set("JobRequeue", "1");
    set("PreemptExemptTime", printed_time(min_run));
    set("PreemptMode", lends(policy) ? "REQUEUE" : "OFF");
    set("PreemptType", lends(policy) ? "preempt/partition_prio" : "preempt/none");
    set("PriorityCalcPeriod", "00:01:00");
    set("PriorityDecayHalfLife", slurm_time(half_life));
    set("PriorityFavorSmall", "No");
    set("PriorityMaxAge", slurm_time(std::chrono::hours{24 * 7}));
    set("PriorityWeightAge", "1000");
    set("PriorityWeightAssoc", "0");
    set("PriorityWeightFairshare", "10000");
    set("PriorityWeightJobSize", "0");
    set("PriorityWeightPartition", "0");
    set("PriorityWeightQOS", "0");
}

bool has_shares(const Policy& policy)
{
    return std::any_of(policy.pools.begin(), policy.pools.end(),
                       [](const Pool& pool) { return pool.shares.has_value(); });
}

/// slurmctld exits if a partition has a billing weight for a TRES that is not accounted for.
std::string accounted(const Policy& policy)
{
    std::vector<std::string> tres{"gres/gpu"};
    for (const GpuModel& model : policy.gpus) {
        tres.push_back("gres/gpu:" + model.name);
    }
    if (has_shares(policy)) {
        tres.emplace_back("gres/shard");
    }
    return sorted(std::move(tres));
}

void add_requirements(const Policy& policy, std::vector<Object>& objects)
{
    const auto need = [&](std::string name, std::string problem) {
        objects.push_back(
            {Kind::requirement, std::move(name), {{"contains", std::move(problem)}}, 0});
    };
    need("AccountingStorageEnforce", "associations,limits,qos,safe");
    need("AccountingStorageTRES", accounted(policy));
    need("JobSubmitPlugins", "lua");
    if (has_shares(policy)) {
        need("GresTypes", "shard");
    }
    need("SchedulerParameters", "bf_continue,bf_one_resv_per_job,preempt_youngest_first");
    const auto probed =
        std::find_if(policy.pools.begin(), policy.pools.end(),
                     [](const Pool& pool) { return pool.lend && pool.lend->probe; });
    if (probed != policy.pools.end()) {
        for (const auto& [name, value] :
             {std::pair("HealthCheckProgram", "the path of gpuq-node-probe"),
              std::pair("HealthCheckInterval", "60")}) {
            objects.push_back(
                {Kind::requirement, name, {{"set", value}}, probed->lend->probe->line});
        }
    }
    // slurmctld loads it only when it starts: after a reconfigure it would show the new value, but
    // continue to use the old one.
    objects.push_back({Kind::requirement, "PriorityType", {{"is", "priority/multifactor"}}, 0});
    objects.push_back({Kind::requirement, "PriorityFlags", {{"without", "NO_FAIR_TREE"}}, 0});
    // Its weights would be added to those that the policy sets, and there is no value for "none".
    objects.push_back({Kind::requirement, "PriorityWeightTRES", {{"unset", ""}}, 0});
}

void add_hardware(const Policy& policy, std::vector<Object>& objects)
{
    for (const Pool& pool : policy.pools) {
        const auto& stated = pool.threads_per_core;
        objects.push_back({Kind::hardware,
                           pool.name,
                           {{"Nodes", pool.node_list},
                            {"ThreadsPerCore", std::to_string(pool.threads())},
                            {"stated", stated ? "YES" : "NO"}},
                           stated ? stated->line : pool.line});
    }
}

/// `GRES/gpu:k80=0.25,GRES/gpu:p100=0.6`; for a policy without models: `GRES/gpu=1`. A share has
/// its part of the weight of the pool's first model.
std::string billing(const Policy& policy, const Pool& pool)
{
    std::vector<std::string> weights;
    for (const GpuModel& model : policy.gpus) {
        weights.push_back(fmt::format("GRES/gpu:{}={}", model.name, model.weight.value));
    }
    if (weights.empty()) {
        weights.emplace_back("GRES/gpu=1");
    }
    if (pool.shares) {
        const GpuModel* const model =
            pool.gpus.value.empty() ? nullptr : policy.model(pool.gpus.value.front().model);
        const double weight = model != nullptr ? model->weight.value : 1.0;
        weights.push_back(fmt::format("GRES/shard={:.4g}", weight / pool.shares->per_gpu.value));
    }
    return sorted(std::move(weights));
}

Fields partition_fields(const Policy& policy, const Queue& queue,
                        const QueuePartition& queue_partition)
{
    Fields fields{{"Nodes", queue_partition.pool->node_list},
                  {"MaxTime", std::to_string(queue.max_time.value.count())},
                  {"DefaultTime", std::to_string(queue.default_time.value.count())},
                  {"PriorityTier", std::to_string(queue_partition.tier)},
                  {"AllowQos", qos_of(queue)},
                  {"OverTimeLimit", "0"}, // slurm.conf may allow jobs to exceed their limit
                  {"PreemptMode", queue_partition.guest ? "REQUEUE" : "OFF"},
                  {"TRESBillingWeights", billing(policy, *queue_partition.pool)}};
    if (queue.limits.has_soft() && queue_partition.kind == QueuePartition::Kind::own) {
        fields["QOS"] = soft_qos_of(queue);
    }
    if (queue_partition.guest) {
        fields["GraceTime"] = std::to_string(queue_partition.pool->lend->grace.value.count());
    }
    if (queue_partition.closed) {
        fields["State"] = "DOWN"; // jobs may be submitted, and wait
    }
    if (queue.cpus_per_gpu) {
        fields["DefCpuPerGPU"] = std::to_string(queue.cpus_per_gpu->value);
    }
    if (queue.memory_per_gpu_mib) {
        fields["DefMemPerGPU"] = std::to_string(queue.memory_per_gpu_mib->value);
    }
    if (policy.default_queue && policy.default_queue->value == queue.name &&
        queue_partition.partition == queue.name) {
        fields["Default"] = "YES";
    }
    return fields;
}

void limit(Fields& fields, const std::string& name, const Maybe<int>& rule,
           std::string_view unit = "")
{
    if (rule) {
        fields[name] = fmt::format("{}{}", unit, rule->value);
    }
}

/// `gres/gpu=2,gres/shard=4`
void limit_gpus(Fields& fields, const std::string& name, const Share& share)
{
    std::vector<std::string> tres;
    if (share.gpus) {
        tres.push_back(fmt::format("gres/gpu={}", share.gpus->value));
    }
    if (share.shares) {
        tres.push_back(fmt::format("gres/shard={}", share.shares->value));
    }
    if (!tres.empty()) {
        fields[name] = sorted(std::move(tres));
    }
}

Fields qos_fields(const Queue& queue)
{
    const Limits& limits = queue.limits;
    Fields fields;
    // With a soft limit, Slurm would refuse jobs beyond it, although another partition accepts
    // them. Jobs that no partition would ever accept are refused by the script.
    if (!limits.has_soft()) {
        fields["Flags"] = "DenyOnLimit";
    }
    limit_gpus(fields, "MaxTRESPU", limits.user);
    limit(fields, "MaxJobsPU", limits.user.jobs);
    limit(fields, "MaxSubmitPU", limits.user.queued);
    limit_gpus(fields, "MaxTRESPA", limits.account);
    limit(fields, "MaxJobsPA", limits.account.jobs);
    limit(fields, "MaxSubmitPA", limits.account.queued);
    limit_gpus(fields, "GrpTRES", limits.all);
    limit(fields, "GrpJobs", limits.all.jobs);
    limit(fields, "GrpSubmit", limits.all.queued);
    std::vector<std::string> job;
    if (limits.job.gpus && limits.job.gpus->value > 0) { // 0: shares only, enforced by the script
        job.push_back(fmt::format("gres/gpu={}", limits.job.gpus->value));
    }
    if (limits.job.nodes) {
        job.push_back(fmt::format("node={}", limits.job.nodes->value));
    }
    if (limits.job.shares) {
        job.push_back(fmt::format("gres/shard={}", limits.job.shares->value));
    }
    if (!job.empty()) {
        fields["MaxTRES"] = sorted(std::move(job));
    }
    const auto minutes_ahead = [&](const std::string& name, const Maybe<int>& hours) {
        if (hours) {
            fields[name] = fmt::format("gres/gpu={}", std::int64_t{hours->value} * 60);
        }
    };
    minutes_ahead("MaxTRESRunMinsPU", limits.user.gpu_hours_ahead);
    minutes_ahead("MaxTRESRunMinsPA", limits.account.gpu_hours_ahead);
    minutes_ahead("GrpTRESRunMins", limits.all.gpu_hours_ahead);
    return fields;
}

void add_queue(const Policy& policy, const Queue& queue, std::vector<Object>& objects)
{
    for (const QueuePartition& queue_partition : partitions_of(policy, queue)) {
        objects.push_back({Kind::partition, queue_partition.partition,
                           partition_fields(policy, queue, queue_partition), queue.line});
    }
    objects.push_back({Kind::qos, qos_of(queue), qos_fields(queue), queue.line});
    Fields soft;
    limit(soft, "MaxTRESPU", queue.limits.user.soft_gpus, "gres/gpu=");
    limit(soft, "MaxTRESPA", queue.limits.account.soft_gpus, "gres/gpu=");
    if (!soft.empty()) {
        objects.push_back({Kind::qos, soft_qos_of(queue), std::move(soft), queue.line});
    }
    const bool open = queue.access.is_open();
    objects.push_back({Kind::access,
                       qos_of(queue),
                       {{"accounts", open ? "root" : sorted(queue.access.accounts)},
                        {"users", sorted(queue.access.users)}},
                       open ? queue.line : queue.access.line});
}

std::string_view slurm_word(Course::Repeat repeat)
{
    switch (repeat) {
    case Course::Repeat::daily:
        return "DAILY";
    case Course::Repeat::weekdays:
        return "WEEKDAY";
    case Course::Repeat::weekly:
        return "WEEKLY";
    case Course::Repeat::once:
        break;
    }
    return "";
}

void add_rest(const Policy& policy, std::vector<Object>& objects)
{
    for (const FairShare::Part& part : policy.fair_share.shares) {
        objects.push_back({Kind::share,
                           part.account,
                           {{"fairshare", std::to_string(part.shares.value)}},
                           part.shares.line});
    }
    for (const Course& course : policy.courses) {
        objects.push_back({Kind::reservation,
                           course.name,
                           {{"Nodes", course.node_list},
                            {"StartTime", course.start.value},
                            {"Duration", std::to_string(course.duration.value.count())},
                            {"Flags", std::string(slurm_word(course.repeat.value))},
                            {"Users", sorted(course.users)},
                            {"Accounts", sorted(course.accounts)}},
                           course.line});
    }
    objects.push_back({Kind::script, "job_submit.lua", {{"version", lua_version(policy)}}, 0});
}

/// A partition's field in the notation of slurm.conf(5).
std::string conf_field(const std::string& name, const std::string& value)
{
    if (name == "MaxTime" || name == "DefaultTime") {
        return fmt::format(" {}={}", name, slurm_time(minutes{std::stoll(value)}));
    }
    return fmt::format(" {}={}", name, value);
}

} // namespace

std::vector<Object> objects_of(const Policy& policy)
{
    if (policy.queues.empty()) {
        return {}; // all of Slurm is the site's own
    }
    std::vector<Object> objects;
    add_settings(policy, objects);
    add_requirements(policy, objects);
    add_hardware(policy, objects);
    for (const Queue& queue : policy.queues) {
        add_queue(policy, queue, objects);
    }
    add_rest(policy, objects);
    std::stable_sort(objects.begin(), objects.end(), [](const Object& one, const Object& other) {
        return std::pair(one.kind, one.name) < std::pair(other.kind, other.name);
    });
    return objects;
}

std::string slurm_conf_of(const Policy& policy)
{
    return slurm_conf_of(objects_of(policy));
}

std::string slurm_conf_of(const std::vector<Object>& objects)
{
    std::string text = "# Made by `gpuq policy apply`; a change by hand is found by `gpuq policy "
                       "drift`.\n";
    for (const Object& object : objects) {
        if (object.kind == Kind::setting) {
            text += fmt::format("{}={}\n", object.name, object.fields.at("value"));
        } else if (object.kind == Kind::partition) {
            text += "PartitionName=" + object.name;
            for (const auto& [name, value] : object.fields) {
                text += conf_field(name, value);
            }
            text += "\n";
        }
    }
    return text;
}

} // namespace gpuq::policy
