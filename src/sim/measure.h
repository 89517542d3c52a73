// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/simulate.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// How long some runs waited for their first start.
struct Waits {
    std::size_t runs = 0;
    std::size_t never = 0; ///< refused or never started; in no other figure
    Seconds p50{0};        ///< the smallest that at least half of them do not exceed
    Seconds p95{0};
    Seconds max{0};
    double mean = 0;        ///< seconds
    double mean_in_all = 0; ///< with the waits of the further links
    /// The part of those that started that did within the class's target; none: none started.
    std::optional<double> within_target;

    bool operator==(const Waits&) const = default;
};

struct NamedWaits {
    std::string name;
    Waits waits;

    bool operator==(const NamedWaits&) const = default;
};

/// What the classes are, and how soon they are to start.
struct Targets {
    Seconds short_run = std::chrono::hours{2}; ///< as long or shorter
    Seconds short_target = std::chrono::hours{2};
    Seconds long_target = std::chrono::hours{24};
};

struct Measures {
    Waits all;
    Waits short_runs;
    Waits long_runs;
    std::vector<NamedWaits> users;      ///< by name
    std::vector<NamedWaits> partitions; ///< in which they started, in the machine's order
    Seconds span{0}; ///< from the first submission to the last: what follows is within it
    double use = 0;  ///< GPU-seconds run, of all
    double idle_while_waiting = 0; ///< GPU-seconds idle while any job waits, of all
    /// The same of those that some waiting job may use: of its partitions, and as many on the node
    /// as it asks for. Whether its user is at a limit is not looked at.
    double idle_while_allowed = 0;
    std::size_t preempted = 0; ///< runs that were, once or more
    std::size_t stopped = 0;   ///< at their time limit, with work left to do

    bool operator==(const Measures&) const = default;
};

/// Measures the course that `jobs` took on `machine`.
Measures measure(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
                 const Targets& targets = {});

/// The smallest of `waits`, ascending and not empty, that at least so many percent of them do not
/// exceed.
Seconds percentile(const std::vector<Seconds>& waits, std::size_t percent);

/// What a policy costs those it does not favour: the mean wait in all, new over old; 1 when nobody
/// waited in either, and nobody's is compared to zero (then one second).
double harm(const Waits& before, const Waits& after);

} // namespace gpuq::sim
