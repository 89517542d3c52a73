// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/result.h"
#include "ports/nodes.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Memory of one GPU in MiB, as the vendor specifies it, derived from Slurm's name of the model: a
/// size in the name (`a100-80g`, `v100_32gb`), or a model that exists in one size only. Slurm
/// itself does not know it. Nothing for an unknown model.
std::optional<std::uint64_t> memory_of_model(std::string_view model);

/// GPUs of one model that a queue offers.
struct OfferedGpus {
    std::string model; ///< Slurm's name; empty: unnamed
    int most = 0;      ///< on one node
    std::optional<std::uint64_t> memory_mib;
    bool operator==(const OfferedGpus&) const = default;
};

/// The GPUs of a queue's nodes, with their memory from memory_of_model.
std::vector<OfferedGpus> offered_gpus(const Partition& queue, const std::vector<Node>& nodes);

/// The model with the least memory that suffices for `request` (`16G+`) and that a node has enough
/// GPUs of. `denied` lists the models of `queue`.
Result<std::string> model_with_memory(const GpuRequest& request, const std::string& queue,
                                      const std::vector<OfferedGpus>& offered);

/// The shares for a run in one of `queues`, which name partitions: as `asked`, with the number of
/// parts of a GPU and the CPUs and memory that come with the share. If nodes differ, with the
/// smallest number that suffices, and the least CPUs and memory of the queues. `denied` if no node
/// has such shares, or a GPU fewer parts.
Result<GpuShare> share_of_a_gpu(const GpuShare& asked, const std::vector<std::string>& queues,
                                const std::vector<Partition>& partitions,
                                const std::vector<Node>& nodes);

/// Slurm's name of the MIG devices with a profile (`a100_1g.5gb` for `1g.5gb`), of which a node has
/// enough. `denied` lists the models of `queue`.
Result<std::string> model_with_profile(const GpuRequest& request, const std::string& queue,
                                       const std::vector<OfferedGpus>& offered);

/// The GPUs that each queue offers, by the queue's name.
using QueueGpus = std::map<std::string, std::vector<OfferedGpus>>;

/// The same for the first of several queues that has such a model. Nothing if none of them is in
/// `gpus`.
Result<std::optional<std::string>> model_among(const GpuRequest& request,
                                               const std::vector<std::string>& queues,
                                               const QueueGpus& gpus);

} // namespace gpuq
