// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/result.h"
#include "ports/cluster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Memory of one GPU, in GiB as its maker counts, told from the name that Slurm has for the model:
/// a size in the name (`a100-80g`, `v100_32gb`) or a model that has only one. Slurm itself
/// does not know it. Nothing for a model that we do not know.
std::optional<std::uint64_t> memory_of_model(std::string_view model);

/// The model of `queue` with the least memory that is enough for `request` (`16G+`) and as many
/// GPUs on a node. `denied` names what the queue has.
Result<std::string> model_with_memory(const GpuRequest& request, const Partition& queue,
                                      const std::vector<Node>& nodes);

} // namespace gpuq
