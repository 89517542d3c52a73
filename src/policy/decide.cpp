// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/decide.h"

#include "core/comment.h"
#include "core/strings.h"
#include "policy/ambiguous_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <tuple>

namespace gpuq::policy {
namespace {

using Strings = std::vector<std::string>;
using QueueRules = Rules::QueueRules;
using Candidates = std::vector<const QueueRules*>;
using Partitions = std::vector<QueuePartition>;

bool contains(const Strings& messages, const std::string& word)
{
    return std::find(messages.begin(), messages.end(), word) != messages.end();
}

std::string account_of(const Submission& job)
{
    return stored_account(job.account);
}

bool may_use(const Queue& queue, const Submission& job)
{
    return queue.access.is_open() || contains(queue.access.users, job.user_name) ||
           contains(queue.access.accounts, account_of(job));
}

/// Whether the partition's pool has the models, or enough GPUs on one node.
bool has_models(const QueuePartition& queue_partition, const GpuTotals& asked)
{
    return std::all_of(asked.models.begin(), asked.models.end(), [&](const std::string& model) {
        return queue_partition.pool->has_model(model);
    });
}

bool has_room(const QueuePartition& queue_partition, const GpuTotals& asked)
{
    const auto& shares = queue_partition.pool->shares;
    if (asked.parts > 0 &&
        (!shares || asked.parts > static_cast<std::uint64_t>(shares->per_gpu.value))) {
        return false;
    }
    return queue_partition.pool->gpus.value.empty() ||
           asked.per_node <= static_cast<std::uint64_t>(queue_partition.pool->gpus_per_node());
}

/// How a job gets more CPUs or memory than come with its GPUs.
enum class Excess {
    none,
    asked,  ///< it requests them
    cores,  ///< through whole cores whose threads it does not all use
    spread, ///< through its requests per node, on more nodes than it needs
    uneven, ///< through nodes that get as many CPUs as the one with the most GPUs
};

std::uint64_t gpus_of_a_node(const QueuePartition& queue_partition, const GpuTotals& asked)
{
    return queue_partition.pool->gpus.value.empty()
               ? asked.total
               : static_cast<std::uint64_t>(queue_partition.pool->gpus_per_node());
}

std::uint64_t cpus_with_each(const Queue& queue)
{
    return static_cast<std::uint64_t>(queue.cpus_per_gpu ? queue.cpus_per_gpu->value : 0);
}

/// The most nodes that one job can get; the queue's limit is in its QOS, too (MaxTRES).
std::uint64_t most_nodes(const Queue& queue)
{
    const Maybe<int>& nodes = queue.limits.job.nodes;
    return nodes ? static_cast<std::uint64_t>(nodes->value) : k_unlimited;
}

/// The CPUs or memory that come with the GPUs of a job, or with the part of one that it shares:
/// rounded down, as in share_of_a_gpu() (runs/queues/gpu_models.h), but at least 1.
std::uint64_t comes_with(std::uint64_t each, const QueuePartition& queue_partition,
                         const GpuTotals& asked)
{
    if (asked.parts == 0 || !queue_partition.pool->shares) {
        return asked.total * each;
    }
    const auto per_gpu = static_cast<std::uint64_t>(queue_partition.pool->shares->per_gpu.value);
    return std::max<std::uint64_t>(1, each * asked.parts / per_gpu);
}

Excess excess(const Queue& queue, const QueuePartition& queue_partition, const Submission& job,
              const GpuTotals& asked)
{
    if (asked.total == 0 && asked.parts == 0) {
        return Excess::none;
    }
    const std::uint64_t share = comes_with(cpus_with_each(queue), queue_partition, asked);
    const std::uint64_t memory = comes_with(
        queue.memory_per_gpu_mib ? queue.memory_per_gpu_mib->value : 0, queue_partition, asked);
    const auto beyond = [&](NodeLayout layout) {
        const JobSize size = job_size(job, asked, cpus_with_each(queue), layout);
        const auto threads = static_cast<std::uint64_t>(layout.threads_per_core);
        // A share that is not a whole number of cores is rounded up.
        const std::uint64_t cores = (share + threads - 1) / threads;
        const std::uint64_t cpus = threads == 1 ? size.cpus : size.allocated;
        return (queue.cpus_per_gpu && cpus > cores * threads) ||
               (queue.memory_per_gpu_mib && (size.memory_mib > memory || size.all_memory));
    };
    if (beyond({})) {
        return Excess::asked;
    }
    const int threads = queue_partition.pool->threads();
    if (beyond({threads, most_nodes(queue)})) {
        return beyond({threads, 1}) ? Excess::cores : Excess::spread;
    }
    return beyond({threads, 1, gpus_of_a_node(queue_partition, asked)}) ? Excess::uneven
                                                                        : Excess::none;
}

/// Whether other jobs can use the GPUs of the node that this job does not request. If a pool does
/// not specify how many there are, a whole node is accepted: Slurm gives a job all of its GPUs, and
/// counts them.
bool leaves_the_rest(const QueuePartition& queue_partition, const GpuTotals& asked,
                     const JobSize& size, bool beyond)
{
    const bool known = !queue_partition.pool->gpus.value.empty();
    if (known &&
        asked.per_node >= static_cast<std::uint64_t>(queue_partition.pool->gpus_per_node())) {
        return true;
    }
    const bool counted = !known && asked.total > 0;
    return !beyond && !size.no_other_user && (!size.whole_nodes || counted);
}

/// The first requested model that the queue does not offer, or null.
const std::string* missing_model(const QueueRules& rules, const GpuTotals& asked)
{
    const auto& named = rules.queue->models;
    for (const std::string& model : asked.models) {
        const bool there = std::any_of(rules.queue_partitions.begin(), rules.queue_partitions.end(),
                                       [&](const QueuePartition& queue_partition) {
                                           return queue_partition.pool->has_model(model);
                                       });
        if (!there || (named && !contains(named->value, model))) {
            return &model;
        }
    }
    return nullptr;
}

const std::string& why_whole(const Sentences& sentences, Excess beyond)
{
    switch (beyond) {
    case Excess::asked:
        return sentences.share;
    case Excess::cores:
        return sentences.cores;
    case Excess::spread:
        return sentences.spread;
    case Excess::uneven:
        return sentences.uneven;
    case Excess::none:
        break;
    }
    return sentences.whole;
}

/// The job's GPUs, on as many nodes as it can get.
std::uint64_t most_gpus(const Queue& queue, const GpuTotals& asked)
{
    return queue.limits.job.nodes
               ? std::min(asked.most, std::max(asked.total, asked.per_node * most_nodes(queue)))
               : asked.most;
}

/// One queue's answer: the partitions for the job, or the reason for the refusal.
struct Answer {
    std::vector<const QueuePartition*> queue_partitions;
    std::string why;
};

/// Whether CPUs and memory are requested now, or are those that the job already has, perhaps by
/// Slurm's defaults.
enum class Size { asked, kept };

Answer ask(const QueueRules& rules, const Submission& job, const GpuTotals& asked,
           Size whose = Size::asked)
{
    const Queue& queue = *rules.queue;
    const Sentences& sentences = rules.sentences;
    const auto refused = [](std::string why) { return Answer{{}, std::move(why)}; };
    const JobLimits& limits = queue.limits.job;
    if (!may_use(queue, job)) {
        return refused(sentences.access);
    }
    const Submitter submitter = submitter_in(job.comment);
    if (queue.through && submitter != Submitter::sweep &&
        (is_for_sweeps(queue) || submitter == Submitter::other)) {
        return refused(sentences.through);
    }
    if (submitter == Submitter::sweep && !sentences.sweep.empty()) {
        return refused(sentences.sweep);
    }
    const Maybe<int> most_shares = queue.limits.most_shares_of_a_job();
    if (asked.shares && (!most_shares || asked.parts == 0)) {
        return refused(sentences.shares);
    }
    if (asked.shares && asked.parts > static_cast<std::uint64_t>(most_shares->value)) {
        return refused(sentences.share_count);
    }
    if (asked.total == 0 && !asked.shares && !rules.takes_gpuless) {
        return refused(sentences.gpuless);
    }
    if (const std::string* model = missing_model(rules, asked)) {
        return refused(*model + sentences.model);
    }
    if (job.time_limit &&
        *job.time_limit > static_cast<std::uint64_t>(queue.max_time.value.count())) {
        return refused(sentences.time);
    }
    const Maybe<int> most = queue.limits.most_gpus_of_a_job();
    if (most && most_gpus(queue, asked) > static_cast<std::uint64_t>(most->value)) {
        return refused(sentences.gpus);
    }
    if (limits.nodes &&
        job.min_nodes.value_or(1) > static_cast<std::uint32_t>(limits.nodes->value)) {
        return refused(sentences.nodes);
    }
    if (job.qos && *job.qos != rules.qos) {
        return refused(sentences.qos);
    }
    const JobSize size = job_size(job, asked, cpus_with_each(queue));
    Excess beyond = Excess::none;
    bool together = false;
    bool fits = false;
    Answer answer;
    for (const QueuePartition& queue_partition : rules.queue_partitions) {
        const bool models = has_models(queue_partition, asked);
        together = together || models;
        if (models && has_room(queue_partition, asked)) {
            fits = true;
            beyond =
                whose == Size::asked ? excess(queue, queue_partition, job, asked) : Excess::none;
            if (leaves_the_rest(queue_partition, asked, size, beyond != Excess::none)) {
                answer.queue_partitions.push_back(&queue_partition);
            }
        }
    }
    if (answer.queue_partitions.empty()) {
        answer.why = !together
                         ? fmt::format("{}{}", fmt::join(asked.models, " and "), sentences.mix)
                     : !fits ? asked.shares ? sentences.share_fit
                                            : fmt::format("{}{}", asked.per_node, sentences.fit)
                             : why_whole(sentences, beyond);
    }
    return answer;
}

bool is_of(const Course& course, const Submission& job)
{
    return contains(course.users, job.user_name) || contains(course.accounts, account_of(job));
}

/// Slurm gives a job with shares the default memory of a job without GPUs, which may be all memory
/// of the node. The least of the pools.
std::optional<std::uint32_t>
memory_of_share(const Queue& queue, const Submission& job,
                const std::vector<const QueuePartition*>& queue_partitions)
{
    const GpuTotals asked = gpu_totals(job);
    if (asked.parts == 0 || !queue.memory_per_gpu_mib || job.min_mem_per_node ||
        job.min_mem_per_cpu) {
        return std::nullopt;
    }
    std::uint64_t least = k_unlimited - 2;
    for (const QueuePartition* one : queue_partitions) {
        least = std::min(least, comes_with(queue.memory_per_gpu_mib->value, *one, asked));
    }
    return static_cast<std::uint32_t>(least);
}

Verdict accepted(const QueueRules& rules, const Submission& job,
                 const std::vector<const QueuePartition*>& queue_partitions)
{
    Verdict verdict;
    verdict.outcome = Verdict::Outcome::accept;
    verdict.queue = rules.queue->name;
    for (const QueuePartition* queue_partition : queue_partitions) {
        verdict.partitions.push_back(queue_partition->partition);
    }
    verdict.qos = rules.qos;
    verdict.memory_mib = memory_of_share(*rules.queue, job, queue_partitions);
    if (!job.time_limit) {
        verdict.time_limit = static_cast<std::uint32_t>(rules.queue->default_time.value.count());
        verdict.messages.push_back(rules.sentences.undeclared);
    }
    return verdict;
}

Verdict refused(Strings messages)
{
    Verdict verdict;
    verdict.outcome = Verdict::Outcome::refuse;
    verdict.messages = std::move(messages);
    return verdict;
}

/// The verdict for a job in a reservation, if a queue accepts it on the pools in which that has
/// nodes.
std::optional<Verdict> in_reservation(const std::string& name, const Candidates& candidates,
                                      const Submission& job, const GpuTotals& asked,
                                      const std::function<bool(const Pool&)>& has_nodes)
{
    for (const QueueRules* rules : candidates) {
        Answer answer = ask(*rules, job, asked);
        std::erase_if(answer.queue_partitions, [&](const QueuePartition* queue_partition) {
            return !has_nodes(*queue_partition->pool);
        });
        if (!answer.queue_partitions.empty()) {
            Verdict verdict = accepted(*rules, job, answer.queue_partitions);
            verdict.reservation = name;
            return verdict;
        }
    }
    return std::nullopt;
}

const Pool* pool_of(const Rules& rules, const std::string& partition)
{
    const QueueRules* const queue = rules.of_partition(partition);
    for (const QueuePartition& one : queue ? queue->queue_partitions : Partitions{}) {
        if (one.partition == partition) {
            return one.pool;
        }
    }
    return nullptr;
}

/// The reservations that are on: courses, and those made by `gpuq reserve`.
struct On {
    const Strings& courses;
    const std::vector<Reserved>& reserved;
};

std::optional<Verdict> in_any_reservation(const Rules& rules, const Candidates& candidates,
                                          const Submission& job, const GpuTotals& asked,
                                          const On& on)
{
    if (job.reservation) {
        return std::nullopt;
    }
    for (const Course& course : rules.policy().courses) {
        if (contains(on.courses, course.name) && is_of(course, job)) {
            const auto has = [&](const Pool& pool) { return pool.has_some_of(course); };
            if (auto verdict = in_reservation(course.name, candidates, job, asked, has)) {
                return verdict;
            }
        }
    }
    for (const Reserved& one : on.reserved) {
        const Pool* const pool = pool_of(rules, one.partition);
        if (pool != nullptr && contains(one.users, job.user_name)) {
            const auto has = [&](const Pool& other) { return other.name == pool->name; };
            if (auto verdict = in_reservation(one.name, candidates, job, asked, has)) {
                return verdict;
            }
        }
    }
    return std::nullopt;
}

Verdict evaluate(const Rules& rules, const Candidates& candidates, const Submission& job,
                 const On& on, Size whose = Size::asked)
{
    const GpuTotals asked = gpu_totals(job);
    if (auto verdict = in_any_reservation(rules, candidates, job, asked, on)) {
        return *std::move(verdict);
    }
    Strings reasons;
    for (const QueueRules* queue : candidates) {
        Answer answer = ask(*queue, job, asked, whose);
        if (!answer.queue_partitions.empty()) {
            Verdict verdict = accepted(*queue, job, answer.queue_partitions);
            verdict.declined = std::move(reasons);
            return verdict;
        }
        reasons.push_back(std::move(answer.why));
    }
    if (candidates.size() > 1) {
        reasons.insert(reasons.begin(), nowhere(rules.policy()));
    }
    return refused(std::move(reasons));
}

/// The policy's queues in a list of partitions; `mixed` if the list has other partitions, too.
struct Asked {
    Candidates queues;
    bool mixed = false;
};

Asked queues_in(const Rules& rules, const std::string& partitions)
{
    Asked asked;
    bool others = false;
    for (const std::string_view name : split(partitions, ",")) {
        const QueueRules* queue = rules.of_partition(std::string(name));
        others = others || queue == nullptr;
        const bool known =
            std::find(asked.queues.begin(), asked.queues.end(), queue) != asked.queues.end();
        if (queue != nullptr && !known) {
            asked.queues.push_back(queue);
        }
    }
    asked.mixed = others && !asked.queues.empty();
    return asked;
}

Candidates open_queues(const Rules& rules, const Submission& job)
{
    const auto& by_default = rules.policy().default_queue;
    const GpuTotals asked = gpu_totals(job);
    const bool gpus = asked.total > 0 || asked.shares;
    Candidates queues;
    for (const QueueRules& queue : rules.queues()) {
        if (gpus || (by_default && by_default->value == queue.queue->name)) {
            queues.push_back(&queue);
        }
    }
    return queues;
}

/// Whether CPUs or memory increase for the same GPUs; also true if the GPUs change.
bool grows(const Candidates& queues, const Submission& before, const Submission& after)
{
    const GpuTotals gpus = gpu_totals(before);
    if (gpu_totals(after) != gpus || before.shared != after.shared) {
        return true;
    }
    const auto grows_on = [&](const QueueRules& rules, const QueuePartition& queue_partition) {
        const NodeLayout layout{queue_partition.pool->threads(), most_nodes(*rules.queue)};
        const JobSize was = job_size(before, gpus, cpus_with_each(*rules.queue), layout);
        const JobSize is = job_size(after, gpus, cpus_with_each(*rules.queue), layout);
        return is.cpus > was.cpus || is.allocated > was.allocated ||
               is.memory_mib > was.memory_mib || (is.all_memory && !was.all_memory) ||
               (is.whole_nodes && !was.whole_nodes);
    };
    return std::any_of(queues.begin(), queues.end(), [&](const QueueRules* rules) {
        return std::any_of(rules->queue_partitions.begin(), rules->queue_partitions.end(),
                           [&](const QueuePartition& queue_partition) {
                               return grows_on(*rules, queue_partition);
                           });
    });
}

bool same_cpus(const Submission& before, const Submission& after)
{
    const auto cpus = [](const Submission& job) {
        return std::tie(job.num_tasks, job.ntasks_per_node, job.ntasks_per_tres, job.min_cpus,
                        job.cpus_per_task, job.pn_min_cpus, job.tres.cpus);
    };
    return cpus(before) == cpus(after);
}

/// The job as if it used one thread of each core. Such a job has specified its CPUs; otherwise it
/// would have been refused.
Submission with_one_thread(Submission job)
{
    job.threads_per_core = 1;
    job.cpus_per_task = job.cpus_per_task.value_or(1);
    return job;
}

/// Whether anything else increases that the rules limit. Reductions are always allowed.
bool raises(const Submission& before, const Submission& after)
{
    return !before.time_limit || !after.time_limit || *after.time_limit > *before.time_limit ||
           after.min_nodes.value_or(1) > before.min_nodes.value_or(1) ||
           account_of(after) != account_of(before) || after.qos != before.qos ||
           after.reservation != before.reservation;
}

} // namespace

Rules::Rules(Policy policy)
    : m_policy(std::move(policy))
{
    for (const Queue& queue : m_policy.queues) {
        m_queues.push_back({&queue, partitions_of(m_policy, queue), sentences_of(m_policy, queue),
                            qos_of(queue), m_policy.default_queue.has_value()});
        for (const QueuePartition& queue_partition : m_queues.back().queue_partitions) {
            m_of_partition.emplace(queue_partition.partition, m_queues.size() - 1);
        }
    }
}

const Rules::QueueRules* Rules::of_partition(const std::string& partition) const
{
    const auto found = m_of_partition.find(partition);
    return found == m_of_partition.end() ? nullptr : &m_queues[found->second];
}

Verdict decide(const Rules& rules, const Submission& job, const Strings& courses_on,
               const std::vector<Reserved>& reserved)
{
    Asked asked;
    if (job.partition) {
        asked = queues_in(rules, *job.partition);
    } else {
        asked.queues = open_queues(rules, job);
    }
    if (asked.mixed) {
        return refused({mixed_partitions()});
    }
    if (asked.queues.empty()) {
        return {};
    }
    if (job.het_job_offset) {
        return refused({no_parts()});
    }
    if (has_ambiguous_gpus(job)) {
        return refused({no_ambiguous_gpus()});
    }
    // Observed: --gres=gpu:1 -N 2 gets 10 CPUs of 8 with 22.05, and -N 1 -c 4 gets 20 with 24.11.
    if (job.tres.bound) {
        return refused({no_bound_gpus()});
    }
    return evaluate(rules, asked.queues, job, {courses_on, reserved});
}

Verdict decide_change(const Rules& rules, const Submission& before, const Submission& after,
                      bool partition_changed)
{
    const Asked was = queues_in(rules, before.partition.value_or(""));
    const Asked is = partition_changed ? queues_in(rules, after.partition.value_or("")) : was;
    if ((partition_changed && is.mixed) || (!was.queues.empty() && is.queues.empty())) {
        return refused({mixed_partitions()});
    }
    if (is.queues.empty()) {
        return {};
    }
    if (before.het_job_offset) {
        return refused({no_parts()});
    }
    if (has_foreign_gpus(before, after)) {
        return refused({no_foreign_gpus()});
    }
    if (after.tres != before.tres && has_ambiguous_gpus(after)) {
        return refused({no_ambiguous_gpus()});
    }
    Submission was_job = before;
    Submission job = after;
    // slurmctld does not show a job's threads per core to the script that decides on a change.
    if (!after.threads_per_core && !same_cpus(before, after)) {
        was_job = with_one_thread(was_job);
        job = with_one_thread(job);
    }
    const bool kept = !partition_changed && !grows(is.queues, was_job, job);
    if (kept && !raises(before, after)) {
        Verdict verdict;
        verdict.outcome = Verdict::Outcome::accept;
        verdict.queue = is.queues.front()->queue->name;
        return verdict;
    }
    if (partition_changed && after.qos == before.qos) {
        job.qos.reset(); // it was set by the queue that the job leaves
    }
    Verdict verdict = evaluate(rules, is.queues, job, {{}, {}}, kept ? Size::kept : Size::asked);
    if (!partition_changed) {
        verdict.partitions.clear();
        verdict.qos.clear();
        verdict.memory_mib.reset();
    }
    return verdict;
}

} // namespace gpuq::policy
