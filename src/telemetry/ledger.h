// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

namespace gpuq {

/// What a sample is taken to say of the time before it: not more than so long.
constexpr std::chrono::milliseconds k_longest_step{2500};

/// The time of all GPUs between two samples, by the later one. After a gap none of it is known.
GpuTime gpu_time_between(std::chrono::milliseconds elapsed, const std::vector<GpuSample>& later);

/// `measured` out of `allocated`, exactly: what was not measured is unknown. When more was measured
/// than there was to have (two clocks), unknown gives way first, then idle.
GpuTime of_allocated(GpuTime measured, std::chrono::milliseconds allocated);

} // namespace gpuq
