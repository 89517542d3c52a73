// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/job.h"
#include "sim/machine.h"

#include <cstdint>
#include <vector>

namespace gpuq::sim {

/// Numbers of operations of the simulated schedulers.
struct Effort {
    std::int64_t main_passes = 0;
    std::int64_t backfill_cycles = 0;
    std::int64_t backfill_tests = 0;
    std::int64_t priorities = 0; ///< computed for pending jobs

    bool operator==(const Effort&) const = default;
};

/// The result of a simulation.
struct Course {
    std::vector<Outcome> outcomes; ///< of the jobs, in the order given
    std::vector<Piece> pieces;     ///< in the order of their ends
    Effort effort;

    bool operator==(const Course&) const = default;
};

/// Simulates Slurm's scheduling of the jobs until the last one has ended: the main loop and the
/// conservative backfill of Slurm 22.05, multifactor priority with fair tree, QOS limits,
/// reservations, preemption by partition. The same input yields the same course on every machine;
/// ties are broken by id. `usage` if the machine or the jobs are invalid (check()).
Result<Course> simulate(const Machine& machine, const std::vector<Job>& jobs);

} // namespace gpuq::sim
