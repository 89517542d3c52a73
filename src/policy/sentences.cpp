// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/sentences.h"

#include "core/number.h"
#include "core/size.h"
#include "core/walltime.h"
#include "policy/queue_partitions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

namespace gpuq::policy {
namespace {

std::string for_whom(const Access& access)
{
    std::vector<std::string> whom;
    if (!access.accounts.empty()) {
        whom.push_back(fmt::format("accounts {}", fmt::join(access.accounts, ", ")));
    }
    if (!access.users.empty()) {
        whom.push_back(fmt::format("users {}", fmt::join(access.users, ", ")));
    }
    return fmt::format("{}", fmt::join(whom, " and "));
}

std::string models_text(const Policy& policy, const Queue& queue)
{
    if (queue.models) {
        return fmt::format("{}", fmt::join(queue.models->value, ", "));
    }
    std::set<std::string> models;
    for (const QueuePartition& queue_partition : partitions_of(policy, queue)) {
        for (const GpuCount& gpu : queue_partition.pool->gpus.value) {
            models.insert(gpu.model);
        }
    }
    return fmt::format("{}", fmt::join(models, ", "));
}

/// The most shares of one GPU in the queue's pools, and the line; 0: they have none.
Rule<int> most_shares_of_a_gpu(const Policy& policy, const Queue& queue)
{
    Rule<int> most;
    for (const QueuePartition& one : partitions_of(policy, queue)) {
        if (one.pool->shares && one.pool->shares->per_gpu.value > most.value) {
            most = one.pool->shares->per_gpu;
        }
    }
    return most;
}

void add_share_sentences(const Policy& policy, const Queue& queue, Sentences& sentences)
{
    const auto most = queue.limits.most_shares_of_a_job();
    if (!most) {
        sentences.shares =
            fmt::format("queue {} gives whole GPUs only, no shares of them (shard, mps){}",
                        queue.name, place_of(policy, queue.line));
        return;
    }
    sentences.shares =
        fmt::format("queue {} gives shares of a GPU only as --gres=shard:N on one node, without "
                    "other GPUs{}",
                    queue.name, place_of(policy, most->line));
    sentences.share_count =
        fmt::format("queue {} gives a job at most {}{}", queue.name,
                    counted(static_cast<std::uint64_t>(most->value), "share") + " of a GPU",
                    place_of(policy, most->line));
    const Rule<int> of_a_gpu = most_shares_of_a_gpu(policy, queue);
    sentences.share_fit = fmt::format("a GPU of queue {} has {}{}", queue.name,
                                      counted(static_cast<std::uint64_t>(of_a_gpu.value), "share"),
                                      place_of(policy, of_a_gpu.line));
}

} // namespace

std::string duration_text(seconds time)
{
    const auto whole = std::chrono::duration_cast<minutes>(time);
    return whole == time ? to_text(whole) : fmt::format("{} s", time.count());
}

std::string place_of(const Policy& policy, int line)
{
    const std::string name = policy.file.substr(policy.file.rfind('/') + 1);
    return line > 0 ? fmt::format(" ({}:{})", name, line) : fmt::format(" ({})", name);
}

std::string share_text(const Queue& queue)
{
    std::vector<std::string> parts;
    if (queue.cpus_per_gpu) {
        parts.push_back(fmt::format("{} CPUs", queue.cpus_per_gpu->value));
    }
    if (queue.memory_per_gpu_mib) {
        parts.push_back(memory_text(queue.memory_per_gpu_mib->value));
    }
    return fmt::format("{}", fmt::join(parts, " and "));
}

Sentences sentences_of(const Policy& policy, const Queue& queue)
{
    const std::string name = "queue " + queue.name;
    const auto at = [&](int line) { return place_of(policy, line); };
    const JobLimits& job = queue.limits.job;
    Sentences sentences;
    sentences.access = fmt::format("{} is for {} only{}{}", name, for_whom(queue.access),
                                   queue.access.ask ? "; ask " + queue.access.ask->value : "",
                                   at(queue.access.line));
    sentences.model =
        fmt::format(" is not a GPU model of {}, which has {}{}", name, models_text(policy, queue),
                    at(queue.models ? queue.models->line : queue.pools.line));
    sentences.time = fmt::format("{} takes at most {} a job{}", name, to_text(queue.max_time.value),
                                 at(queue.max_time.line));
    if (const Maybe<int> most = queue.limits.most_gpus_of_a_job()) {
        sentences.gpus =
            most->value == 0
                ? fmt::format("{} gives only shares of GPUs (shard){}", name, at(most->line))
                : fmt::format("{} gives a job at most {}{}", name,
                              counted(static_cast<std::uint64_t>(most->value), "GPU"),
                              at(most->line));
    }
    if (job.nodes) {
        sentences.nodes = fmt::format("{} gives a job at most {}{}", name,
                                      counted(static_cast<std::uint64_t>(job.nodes->value), "node"),
                                      at(job.nodes->line));
    }
    add_share_sentences(policy, queue, sentences);
    sentences.gpuless = fmt::format("{} is for jobs with GPUs{}", name, at(queue.line));
    if (queue.cpus_per_gpu || queue.memory_per_gpu_mib) {
        const std::string gives = fmt::format("{} gives {} with each GPU", name, share_text(queue));
        const std::string where =
            at(queue.cpus_per_gpu ? queue.cpus_per_gpu->line : queue.memory_per_gpu_mib->line);
        sentences.share = fmt::format("{}, and no more{}", gives, where);
        sentences.cores =
            fmt::format("{}, and Slurm allocates whole cores, which would be more: ask for "
                        "fewer CPUs (-c) or less memory per CPU, or leave "
                        "--threads-per-core, --hint and --ntasks-per-core out{}",
                        gives, where);
        sentences.spread =
            fmt::format("{}, and --mem and --mincpus apply to every node that the job may "
                        "get, which could be more: add -N 1, or use --mem-per-gpu{}",
                        gives, where);
        sentences.uneven =
            fmt::format("{}, and with --gpus on more than one node each node may get the "
                        "CPUs of the one with the most GPUs: use --gpus-per-node{}",
                        gives, where);
    }
    sentences.whole =
        fmt::format("{} gives a whole node only with all of its GPUs: ask for those, or "
                    "leave --exclusive out{}",
                    name, at(queue.pools.line));
    sentences.fit = fmt::format(" GPUs on one node are more than a node of {} has{}", name,
                                at(queue.pools.line));
    sentences.mix =
        fmt::format(" are together in no pool of {}, and a job gets the nodes of one: ask for "
                    "one model, or send a job for each{}",
                    name, at(queue.pools.line));
    sentences.qos = fmt::format("{} sets the QOS itself: leave --qos out{}", name, at(queue.line));
    if (queue.through) {
        sentences.through =
            fmt::format("{} takes {}{}", name,
                        is_for_sweeps(queue) ? "workers of gpuq sweep only"
                                             : "runs of gpuq only: gpuq run, gpuq shell",
                        at(queue.through->line));
    }
    if (const Queue* const sweeps = policy.sweep_queue();
        sweeps != nullptr && !is_for_sweeps(queue)) {
        sentences.sweep = fmt::format("{} takes no workers of sweeps, which use queue {}{}", name,
                                      sweeps->name, at(sweeps->through->line));
    }
    sentences.undeclared = fmt::format(
        "no time limit given: {} ends the job after {}; -t sets another{}", name,
        to_text(queue.default_time.value),
        at(queue.default_time.line > 0 ? queue.default_time.line : queue.max_time.line));
    return sentences;
}

std::string nowhere(const Policy& policy)
{
    return "no queue takes this job" + place_of(policy, 0);
}

std::string no_bound_gpus()
{
    return "with --gres-flags=enforce-binding, Slurm gives a job more CPUs than requested: leave "
           "it out";
}

std::string no_parts()
{
    return "a heterogeneous job (sbatch A : B) is not possible in queues of the policy: its limits "
           "would hold for each part alone";
}

std::string no_foreign_gpus()
{
    return "Slurm might store this number of GPUs without giving them: write it as scontrol show "
           "job does (TresPerNode), or submit the job again";
}

std::string mixed_partitions()
{
    return "a list of partitions with queues of the policy and others is not possible";
}

} // namespace gpuq::policy
