// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/finding.h"
#include "policy/policy.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::policy {

/// Everything that is wrong in a policy or has no effect: undefined names, nodes in two pools,
/// queues that no job reaches, limits that never bind because others bind first.
std::vector<Finding> check(const Policy& policy);

/// A release of Slurm: 22.05 is {22, 5}.
struct SlurmRelease {
    int year = 0;
    int month = 0;

    friend bool operator<(const SlurmRelease& one, const SlurmRelease& other)
    {
        return std::pair(one.year, one.month) < std::pair(other.year, other.month);
    }
};

/// The consequences of a policy under one release of Slurm at a local time, as in
/// `2026-11-03T13:00`: rules that this release stores but ignores, rounds or does not support;
/// courses that are over; the time until a lent pool is back with its owner; and the bound of the
/// wait for every queue with a `wait.max`.
std::vector<Finding> consequences(const Policy& policy, SlurmRelease slurm, const std::string& now);

/// The number of concurrent users for which the longest wait in a queue is at most `wait.max`, if
/// each of them uses as many GPUs as one user may, and the user next in turn starts first:
/// T x ceil((K-1) x u / C).
struct WaitBound {
    int gpus = 0;       ///< in the queue's own pools
    int with_lent = 0;  ///< including pools in which the queue is a guest
    int per_user = 0;   ///< u
    int user_count = 0; ///< K
    int users_with_lent = 0;
    bool operator==(const WaitBound&) const = default;
};
/// nullopt without a `wait.max`, a GPU limit for users, or known numbers of GPUs.
std::optional<WaitBound> wait_bound(const Policy& policy, const Queue& queue);

} // namespace gpuq::policy
