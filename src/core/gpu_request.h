// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// Value of `-g`: the number of GPUs per node, optionally of one model or with a minimum memory
/// size.
struct GpuRequest {
    int count = 1;
    std::optional<std::string> model;            ///< Slurm's gres type
    std::optional<std::uint64_t> min_memory_mib; ///< `16G+`: any model with at least this memory

    bool operator==(const GpuRequest&) const = default;
};

/// Parses `1`, `2`, `0`, `k80`, `k80:2`, `16G+` or `16G+:2`. `usage` with the reason for anything
/// else; the reserved forms `shard:N` and `mig:NAME` are refused as not supported yet.
Result<GpuRequest> parse_gpu_request(std::string_view text);

/// The inverse: text that parses to `request`.
std::string to_text(const GpuRequest& request);

} // namespace gpuq
