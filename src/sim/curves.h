// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/measure.h"
#include "sim/simulate.h"

#include <cstddef>
#include <vector>

namespace gpuq::sim {

/// A course as it can be drawn.
struct Curves {
    std::vector<Seconds> short_waits; ///< of the short runs that started, for that, ascending
    Seconds part{1};                  ///< how long each part is of what follows
    std::vector<double> waiting;      ///< runs and further links that wait, on average
    std::vector<double> used;         ///< GPUs in use, on average
    int gpus = 0;                     ///< there are

    bool operator==(const Curves&) const = default;
};

/// Draws the course that `jobs` took on `machine`, in parts of `part` from 0 until `end`. The last
/// part may be a shorter one. A run that never starts waits for ever, unless it was refused.
Curves curves(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
              Seconds end, Seconds part, const Targets& targets = {});

/// The part of `waits`, ascending, that is not longer than `wait`; 1 of none.
double share_within(const std::vector<Seconds>& waits, Seconds wait);

/// How long parts are that a curve over `span` has at most 100 of: ten minutes, an hour, six, a
/// day, or whole weeks.
Seconds part_for(Seconds span);

} // namespace gpuq::sim
