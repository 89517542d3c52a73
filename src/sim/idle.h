// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/simulate.h"

#include <vector>

namespace gpuq::sim {

/// In GPU-seconds.
struct GpuTime {
    double all = 0;
    double used = 0;
    double idle_while_waiting = 0;
    double idle_while_allowed = 0;
};

/// How the machine's GPU time was used until `end`. measure.h defines the values.
GpuTime gpu_time(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
                 Seconds end);

} // namespace gpuq::sim
