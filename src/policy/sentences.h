// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>

namespace gpuq::policy {

/// Messages to users about a queue, each with the position of the rule. `decide` and the generated
/// script use the same messages: they are embedded in the script.
struct Sentences {
    std::string access; ///< not allowed to use it, and whom to ask
    std::string model;  ///< follows the name of a model that it does not have
    std::string time;
    std::string gpus;
    std::string nodes;
    std::string shares; ///< requests shares of GPUs, which it does not give, or in another form
    std::string share_count; ///< requests too many of them
    std::string share_fit;   ///< requests more of them than its GPUs have
    std::string gpuless;     ///< requests no GPU
    std::string share;       ///< more CPUs or memory than come with its GPUs
    std::string cores;       ///< the same, through whole cores whose threads it does not all use
    std::string spread;      ///< the same, through its requests on every node
    std::string uneven;      ///< the same, through nodes with unequal numbers of GPUs
    std::string whole;       ///< exclusive nodes, without all of their GPUs
    std::string fit;         ///< follows a number of GPUs that none of its nodes has
    std::string mix;         ///< follows models that none of its pools has together
    std::string qos;         ///< requests a QOS
    std::string through;     ///< not submitted by gpuq, or not by gpuq sweep
    std::string sweep;       ///< works on a sweep; empty: such jobs are accepted
    std::string undeclared;  ///< accepted without a time limit
    bool operator==(const Sentences&) const = default;
};
Sentences sentences_of(const Policy& policy, const Queue& queue);

/// `4 CPUs and 16 GiB`: the share that comes with each GPU; empty if the queue specifies none.
std::string share_text(const Queue& queue);

/// For a job that no queue accepts; precedes the reasons.
std::string nowhere(const Policy& policy);
/// For a list with partitions of the policy and others.
std::string mixed_partitions();
/// For a heterogeneous job. Slurm judges each part separately, so that no limit of a job would
/// hold, and preempts no part while one of them can't be preempted (observed with 22.05): a guest
/// would never leave.
std::string no_parts();
std::string no_bound_gpus();
/// For a change to a number of GPUs in another form than the job has it. slurmctld of 22.05 reads
/// `gres:gpu:2`, and stores `gpu:2` and `gres/gpu:2` as text, while the job keeps the GPUs that it
/// had (observed): it would get the cores that go with more.
std::string no_foreign_gpus();

/// ` (policy.yaml:12)`: the position of a rule; without the directory, which is of no use to users.
std::string place_of(const Policy& policy, int line);

/// `20 min`, or `90 s`.
std::string duration_text(seconds time);

} // namespace gpuq::policy
