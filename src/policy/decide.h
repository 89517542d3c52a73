// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/doors.h"
#include "policy/policy.h"
#include "policy/sentences.h"
#include "policy/submission.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::policy {

/// What the rules say to one job. Only what does not change from one moment to the next: how many
/// GPUs others hold, and who comes first, is Slurm's to count (policy/objects.h).
struct Verdict {
    enum class Outcome {
        accept,
        refuse,
        outside, ///< no job of this policy: it goes as it came
    };
    Outcome outcome = Outcome::outside;
    std::string queue;                       ///< accepted: the queue's name
    std::vector<std::string> partitions;     ///< what the job is given instead of its own
    std::string qos;                         ///< the same
    std::optional<std::uint32_t> time_limit; ///< minutes; only when it had none
    std::string reservation;                 ///< a course's; empty: as it came
    std::vector<std::string> words;    ///< to the user: why not, or what was decided in their place
    std::vector<std::string> declined; ///< why the queues before this one did not take it
    bool operator==(const Verdict&) const = default;
};

/// A policy made ready to judge many jobs. Keeps the policy, and stays where it is: its parts point
/// to each other.
class Rules {
public:
    struct QueueRules {
        const Queue* queue;
        std::vector<Door> doors;
        Sentences say;
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
/// 1. A job that asks for partitions of the policy is judged for their queues, in its order; so it
///    is no use to ask for one of a queue's inner partitions. Other partitions: outside. Both in
///    one list: refused.
/// 2. A job without a partition is judged for all queues, in the order of the file, when it asks
///    for GPUs; without GPUs for `default_queue`, if there is one, else it is outside.
/// 3. A queue takes it when its people, models, time, GPUs and nodes do, and when it leaves others
///    the CPUs and the memory of GPUs that it does not ask for (`per_gpu`, --exclusive). Without a
///    time limit it gets the queue's default one, and is told.
/// 4. Who is of a course that is on goes to its nodes when a queue takes the job there.
///    `courses_on`: the names of the reservations that are active.
/// 5. In the queue, the job gets the partitions of all pools that have its model and enough GPUs on
///    a node.
///
/// Pure, and total: every job has a verdict.
Verdict decide(const Rules& rules, const Submission& job,
               const std::vector<std::string>& courses_on);

/// The same for a change of a job that waits or runs (scontrol update): `after` is the whole job as
/// it would be; a memory of 0 is one that was asked for, not one that Slurm's record shows. A job
/// that was of the policy stays so; without `partition_changed` it stays in its queue, and is
/// judged by what becomes more: CPUs and memory that it has already, perhaps by Slurm's defaults,
/// it keeps, and a change that raises nothing is accepted. Accepted without `partition_changed`:
/// nothing is rewritten.
Verdict decide_change(const Rules& rules, const Submission& before, const Submission& after,
                      bool partition_changed);

/// The submission that a test of the file describes.
Submission submission_of(const Case& test);

} // namespace gpuq::policy
