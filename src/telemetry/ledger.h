// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

namespace gpuq {

/// A sample describes at most this much of the time before it.
constexpr std::chrono::milliseconds k_longest_step{2500};

/// The use of all GPUs between two samples, according to the later one. After a gap, all of it is
/// unknown.
GpuTime gpu_time_between(std::chrono::milliseconds elapsed, const std::vector<GpuSample>& later);

/// Distributes exactly `allocated`: time that was not measured is unknown. If more was measured
/// than allocated (two clocks differ), unknown time is reduced first, then idle time.
GpuTime of_allocated(GpuTime measured, std::chrono::milliseconds allocated);

} // namespace gpuq
