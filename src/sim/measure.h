// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/simulate.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// Waits of some runs for their first start.
struct Waits {
    std::size_t runs = 0;
    std::size_t never = 0; ///< refused or never started; in no other value
    Seconds p50{0};        ///< smallest wait that at least half of them do not exceed
    Seconds p95{0};
    Seconds max{0};
    double mean = 0;        ///< in seconds
    double mean_in_all = 0; ///< including the waits of further links
    /// The fraction of the started runs that started within the target of their class; nullopt:
    /// none started.
    std::optional<double> within_target;

    bool operator==(const Waits&) const = default;
};

struct NamedWaits {
    std::string name;
    Waits waits;

    bool operator==(const NamedWaits&) const = default;
};

/// The classes of runs, and their target waits.
struct Targets {
    Seconds short_run = std::chrono::hours{2}; ///< this long or shorter
    Seconds short_target = std::chrono::hours{2};
    Seconds long_target = std::chrono::hours{24};
};

struct Measures {
    Waits all;
    Waits short_runs;
    Waits long_runs;
    std::vector<NamedWaits> users;      ///< by name
    std::vector<NamedWaits> partitions; ///< in which they started, in the machine's order
    Seconds span{0}; ///< from the first submission to the last: the values below refer to it
    double use = 0;  ///< GPU-seconds in use, as a fraction of all
    double idle_while_waiting = 0; ///< GPU-seconds idle while any job is pending, likewise
    /// The same for GPUs that some pending job may use: in its partitions, and as many on the node
    /// as it requests. Limits of its user are not considered.
    double idle_while_allowed = 0;
    std::size_t preempted = 0; ///< runs preempted at least once
    std::size_t failed = 0;    ///< runs whose node failed at least once
    std::size_t stopped = 0;   ///< runs ended at their time limit, with work left to do

    bool operator==(const Measures&) const = default;
};

/// Measures the course of `jobs` on `machine`.
Measures measure(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
                 const Targets& targets = {});

/// The cost of a policy for jobs that it does not favour: their mean wait over all links, new over
/// old. Means below one second count as one second.
double harm(const Waits& before, const Waits& after);

} // namespace gpuq::sim
