// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/ledger.h"

#include <algorithm>

namespace gpuq {
namespace {

using std::chrono::milliseconds;

/// Hundredths of a percent.
constexpr std::int64_t k_whole = 100 * 100;

} // namespace

GpuTime gpu_time_between(milliseconds elapsed, const std::vector<GpuSample>& later)
{
    GpuTime time;
    if (elapsed <= milliseconds(0)) {
        return time;
    }
    for (const GpuSample& gpu : later) {
        const Reading& busy = gpu[GpuMetric::busy];
        if (!busy.known() || elapsed > k_longest_step) {
            time.unknown += elapsed;
            continue;
        }
        const auto share =
            std::min<std::int64_t>(static_cast<std::int64_t>(*busy.value()), k_whole);
        const milliseconds used = elapsed * share / k_whole;
        time.busy += used;
        time.idle += elapsed - used;
    }
    return time;
}

GpuTime of_allocated(GpuTime measured, milliseconds allocated)
{
    measured.busy = std::min(measured.busy, allocated);
    measured.idle = std::min(measured.idle, allocated - measured.busy);
    measured.unknown = allocated - measured.busy - measured.idle;
    return measured;
}

} // namespace gpuq
