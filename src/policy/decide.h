// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"
#include "policy/queue_partitions.h"
#include "policy/sentences.h"
#include "policy/submission.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::policy {

/// The result of applying the rules to one job. Only rules whose result does not depend on the
/// current load: Slurm itself counts the GPUs that others hold and orders the jobs
/// (policy/objects.h).
struct Verdict {
    enum class Outcome {
        accept,
        refuse,
        outside, ///< not a job of this policy: it is left unchanged
    };
    Outcome outcome = Outcome::outside;
    std::string queue;                       ///< accepted: the name of the queue
    std::vector<std::string> partitions;     ///< they replace those of the job
    std::string qos;                         ///< likewise
    std::optional<std::uint32_t> time_limit; ///< in minutes; only if the job had none
    std::optional<std::uint32_t> memory_mib; ///< per node; only of a job with shares that had none
    std::string reservation;                 ///< of a course; empty: unchanged
    std::vector<std::string> messages; ///< for the user: reasons for a refusal, or defaults applied
    std::vector<std::string> declined; ///< reasons of the queues before this one
    bool operator==(const Verdict&) const = default;
};

/// A reservation made by `gpuq reserve` that has begun.
struct Reserved {
    std::string name;
    std::string partition; ///< one of the pool whose nodes it has
    std::vector<std::string> users;
};

/// A policy prepared for judging many jobs. Owns the policy; not movable, because its parts point
/// to each other.
class Rules {
public:
    struct QueueRules {
        const Queue* queue;
        std::vector<QueuePartition> queue_partitions;
        Sentences sentences;
        std::string qos;
        bool takes_gpuless; ///< jobs without GPUs: the policy has a default queue for them
    };

    Rules(Policy policy);
    Rules(const Rules&) = delete;
    Rules& operator=(const Rules&) = delete;

    const Policy& policy() const { return m_policy; }
    const std::vector<QueueRules>& queues() const { return m_queues; }
    /// The queue of a partition, or null.
    const QueueRules* of_partition(const std::string& partition) const;

private:
    Policy m_policy;
    std::vector<QueueRules> m_queues;
    std::map<std::string, std::size_t> m_of_partition;
};

/// Applies the rules, in this order:
///
/// 1. A job that requests partitions of the policy is judged for their queues, in the order of its
///    list; so it makes no difference which of a queue's partitions it names. Other partitions:
///    outside. Both in one list: refused.
/// 2. A job without a partition is judged for all queues, in the order of the file, if it requests
///    GPUs or shares of them; without GPUs for `default_queue`, if there is one, else it is
///    outside.
/// 3. A queue accepts a job that meets its rules on users, models, time, GPUs and nodes, and leaves
///    to others the CPUs and the memory of GPUs that it does not request (`per_gpu`, --exclusive).
///    A job without a time limit gets the queue's default, and its user a message. A job with
///    shares of a GPU (gres/shard) is accepted if the queue limits them and its pool has them, in
///    the one form in which Slurm counts them as requested: per node, on one node, without whole
///    GPUs. Any other job with shares (gres/mps) is refused: Slurm does not count them as GPUs.
/// 4. A job of a user for whom a course is in progress goes to the course's nodes if a queue
///    accepts it on them. `courses_on`: the names of the active reservations. The same applies to a
///    user of a reservation that was made by `gpuq reserve` and has begun, after all courses.
/// 5. In the queue, the job gets the partitions of all pools that have its model and enough GPUs on
///    a node.
///
/// Pure and total: every job has a verdict.
Verdict decide(const Rules& rules, const Submission& job,
               const std::vector<std::string>& courses_on,
               const std::vector<Reserved>& reserved = {});

/// The same for a change of a pending or running job (scontrol update): `after` is the entire job
/// as it would be; a memory of 0 means that it was requested, not that Slurm's record shows it. A
/// job of the policy remains one. Without `partition_changed` it stays in its queue, and only
/// increases are judged: it keeps the CPUs and memory that it already has, perhaps by Slurm's
/// defaults, and a change that increases nothing is accepted. If a change without
/// `partition_changed` is accepted, nothing is rewritten.
Verdict decide_change(const Rules& rules, const Submission& before, const Submission& after,
                      bool partition_changed);

} // namespace gpuq::policy
