// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "ports/store.h"
#include "runs/status.h"
#include "telemetry/profile.h"
#include "telemetry/sample_file.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
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

/// What one node of a link said of itself in the last `span` before its newest sample, for somebody
/// who looks every few seconds: of a file that was looked at before only the slots are read that
/// have been written since.
class RecentSamples {
public:
    /// `span`: two hours at most.
    RecentSamples(Store& store, std::chrono::minutes span);

    /// The oldest first; they end with the newest of the first node of `newest`, or later.
    const std::vector<Sample>& of(const RunKey& key, LinkNumber link,
                                  const std::vector<NodeSample>& newest);

private:
    void read(const NodeSample& node, std::size_t slot, std::size_t count);

    Store& m_store;
    std::chrono::minutes m_span;
    std::string m_file;
    Time m_began{};
    std::size_t m_slot = 0; ///< of the newest of these
    std::vector<Sample> m_samples;
};

/// What the GPUs of a run have done so far, over all its links. All that was allocated and is not
/// in a sample is unknown.
GpuTime gpu_time_so_far(Store& store, const RunStatus& status, Time now);

/// All samples of all its links and nodes, as a profile; nothing for a run that has not started.
/// Files are read one after the other, so that memory does not grow with the run.
std::optional<telemetry::Profile> profile_so_far(Store& store, const RunStatus& status, Time now);

} // namespace gpuq
