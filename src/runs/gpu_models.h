// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/result.h"
#include "ports/cluster.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Memory of one GPU, in MiB as its maker counts, told from the name that Slurm has for the model:
/// a size in the name (`a100-80g`, `v100_32gb`) or a model that has only one. Slurm itself
/// does not know it. Nothing for a model that we do not know.
std::optional<std::uint64_t> memory_of_model(std::string_view model);

/// GPUs of one model that a queue gives.
struct OfferedGpus {
    std::string model; ///< by Slurm's name; empty: none named
    int most = 0;      ///< on one node
    std::optional<std::uint64_t> memory_mib;
    bool operator==(const OfferedGpus&) const = default;
};

/// What a queue's nodes have, with the memory that memory_of_model tells.
std::vector<OfferedGpus> offered_gpus(const Partition& queue, const std::vector<Node>& nodes);

/// The model with the least memory that is enough for `request` (`16G+`), with as many GPUs on a
/// node. `denied` names what `queue` has.
Result<std::string> model_with_memory(const GpuRequest& request, const std::string& queue,
                                      const std::vector<OfferedGpus>& offered);

/// What each queue gives, by its name.
using QueueGpus = std::map<std::string, std::vector<OfferedGpus>>;

/// The same of the first of several queues that has such a model. Nothing when none of them is in
/// `gpus`.
Result<std::optional<std::string>> model_among(const GpuRequest& request,
                                               const std::vector<std::string>& queues,
                                               const QueueGpus& gpus);

} // namespace gpuq
