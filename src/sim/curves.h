// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/measure.h"
#include "sim/simulate.h"

#include <cstddef>
#include <vector>

namespace gpuq::sim {

/// A course as curves to be drawn.
struct Curves {
    std::vector<Seconds> short_waits; ///< waits of the short runs that started, ascending
    Seconds part{1};                  ///< length of each part of the curves below
    std::vector<double> waiting;      ///< pending runs and further links, on average
    std::vector<double> used;         ///< GPUs in use, on average
    int gpus = 0;                     ///< in total

    bool operator==(const Curves&) const = default;
};

/// Computes the curves for the course of `jobs` on `machine`, in parts of `part` from 0 to `end`.
/// The last part may be shorter. A run that never starts waits for ever, unless it was refused.
Curves curves(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
              Seconds end, Seconds part, const Targets& targets = {});

/// The fraction of `waits`, ascending, that are not longer than `wait`; 1 if there are none.
double share_within(const std::vector<Seconds>& waits, Seconds wait);

/// The length of parts for which a curve over `span` has at most 100 of them: ten minutes, an hour,
/// six hours, a day, or whole weeks.
Seconds part_for(Seconds span);

} // namespace gpuq::sim
