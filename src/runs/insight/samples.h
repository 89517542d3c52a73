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

/// The newest data of one node.
struct NodeSample {
    SampleHeader header;
    std::optional<Sample> newest;
};

/// The newest sample of every node of a link, in the order of the nodes' names. Reads a few KiB per
/// node.
std::vector<NodeSample> newest_samples(Store& store, const RunKey& key, LinkNumber link);

/// The samples of one node of a link in the last `span` before its newest sample, for a caller that
/// polls every few seconds: from a file that was read before, only the slots written since are
/// read.
class RecentSamples {
public:
    /// `span`: two hours at most.
    RecentSamples(Store& store, std::chrono::minutes span);

    /// The samples, oldest first. They end with the newest sample of the first node in `newest`, or
    /// later.
    const std::vector<Sample>& of(const RunKey& key, LinkNumber link,
                                  const std::vector<NodeSample>& newest);

private:
    void read(const NodeSample& node, std::size_t slot, std::size_t count);

    Store& m_store;
    std::chrono::minutes m_span;
    std::string m_file;
    Time m_began{};
    std::size_t m_slot = 0; ///< of the newest sample in m_samples
    std::vector<Sample> m_samples;
};

/// How the GPUs of a run have been used so far, over all its links. Allocated time without samples
/// is unknown.
GpuTime gpu_time_so_far(Store& store, const RunStatus& status, Time now);

/// All samples of all links and nodes as a profile; nothing for a run that has not started. Files
/// are read one after the other, so that memory use does not grow with the run.
std::optional<telemetry::Profile> profile_so_far(Store& store, const RunStatus& status, Time now);

} // namespace gpuq
