// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/job.h"
#include "sim/machine.h"

#include <cstdint>
#include <vector>

namespace gpuq::sim {

/// What it took.
struct Effort {
    std::int64_t main_passes = 0;
    std::int64_t backfill_cycles = 0;
    std::int64_t backfill_tests = 0;
    std::int64_t priorities = 0; ///< computed of those who waited

    bool operator==(const Effort&) const = default;
};

/// What would have happened.
struct Course {
    std::vector<Outcome> outcomes; ///< of the jobs, in the order given
    std::vector<Piece> pieces;     ///< in the order of their ends
    Effort effort;

    bool operator==(const Course&) const = default;
};

/// Lets Slurm's scheduling run over the jobs until the last has ended: the main loop and the
/// conservative backfill of Slurm 22.05, multifactor priority with fair tree, QOS limits,
/// reservations, preemption by partition. The same input gives the same course on every machine;
/// ties are broken by id. `usage` when machine or jobs make no sense (check()).
Result<Course> simulate(const Machine& machine, const std::vector<Job>& jobs);

} // namespace gpuq::sim
