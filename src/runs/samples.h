// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "ports/store.h"
#include "runs/status.h"
#include "telemetry/profile.h"
#include "telemetry/sample_file.h"

#include <chrono>
#include <optional>
#include <vector>

namespace gpuq {

/// What one node last said of itself.
struct NodeSample {
    SampleHeader header;
    std::optional<Sample> newest;
};

/// Of every node of a link that has samples, in the order of their names. A few KiB of each are
/// read.
std::vector<NodeSample> newest_samples(Store& store, const RunKey& key, LinkNumber link);

/// What one node said of itself, as finely as it is known, of the last `span` before its newest
/// sample; the oldest first. The first node's, of one link. Reads the part of the file that has it.
std::vector<Sample> recent_samples(Store& store, const RunKey& key, LinkNumber link,
                                   std::chrono::minutes span);

/// What the GPUs of a run have done so far, over all its links. All that was allocated and is not
/// in a sample is unknown.
GpuTime gpu_time_so_far(Store& store, const RunStatus& status, Time now);

/// All samples of all its links and nodes, as a profile; nothing for a run that has not started.
/// Files are read one after the other, so that memory does not grow with the run.
std::optional<telemetry::Profile> profile_so_far(Store& store, const RunStatus& status, Time now);

} // namespace gpuq
