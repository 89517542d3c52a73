// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/finding.h"
#include "policy/policy.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::policy {

/// Everything that is wrong in what a policy says, and everything it says that has no effect: names
/// that nobody defines, nodes in two pools, queues that no job reaches, limits above others that
/// bind first.
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

/// What follows from a policy under one release of Slurm at a local time, as in
/// `2026-11-03T13:00`: rules that it stores and ignores, rounds, or can not have; courses that are
/// over; and the bound of the wait for every queue with a `wait.max`.
std::vector<Finding> consequences(const Policy& policy, SlurmRelease slurm, const std::string& now);

/// For how many people at once the longest wait of a queue is at most `wait.max`, if each uses as
/// many GPUs as one person may and the next in turn goes first: T x ceil((K-1) x u / C).
struct WaitBound {
    int gpus = 0;      ///< of the queue's own pools
    int with_lent = 0; ///< and of those that are lent to it
    int per_user = 0;  ///< u
    int people = 0;    ///< K
    int people_with_lent = 0;
    bool operator==(const WaitBound&) const = default;
};
/// Nothing without a `wait.max`, a limit of GPUs for a user, or known numbers of GPUs.
std::optional<WaitBound> wait_bound(const Policy& policy, const Queue& queue);

} // namespace gpuq::policy
