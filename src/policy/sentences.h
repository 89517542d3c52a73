// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>

namespace gpuq::policy {

/// What a person is told about a queue, each with the rule's place. `decide` and the generated lua
/// say the same words: the lua is given these.
struct Sentences {
    std::string access; ///< may not use it, and whom to ask
    std::string model;  ///< after the name of a model that it has not
    std::string time;
    std::string gpus;
    std::string nodes;
    std::string gpuless;    ///< asks for no GPU
    std::string share;      ///< more CPUs or memory than come with its GPUs
    std::string cores;      ///< the same, by whole cores of which it does not use every thread
    std::string spread;     ///< the same, by what it asks for on every node
    std::string uneven;     ///< the same, by nodes with unequal numbers of GPUs
    std::string whole;      ///< nodes for itself, without all of their GPUs
    std::string fit;        ///< after a number of GPUs that no node of it has
    std::string mix;        ///< after models that none of its pools has together
    std::string qos;        ///< a QOS was asked for
    std::string through;    ///< was not sent by gpuq
    std::string undeclared; ///< accepted without a time limit
    bool operator==(const Sentences&) const = default;
};
Sentences sentences_of(const Policy& policy, const Queue& queue);

/// `4 CPUs and 16 GiB`: what comes with each GPU; empty when the queue does not say.
std::string share_text(const Queue& queue);

/// A job that is for no queue at all, before the reasons.
std::string nowhere(const Policy& policy);
/// A partition of the policy and one that is not, in one list.
std::string mixed_partitions();
/// Slurm judges each part of a heterogeneous job alone, so that no limit of a job would hold, and
/// preempts none of them while one can't be (seen with 22.05): a guest would never leave.
std::string no_parts();

/// ` (policy.yaml:12)`: where a rule stands; without the folders, which help no user.
std::string place_of(const Policy& policy, int line);

} // namespace gpuq::policy
