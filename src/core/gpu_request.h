// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// Part of one GPU that other jobs use at the same time.
struct GpuShare {
    /// A Slurm generic resource.
    enum class Kind {
        shard, ///< gres/shard
        mps,   ///< gres/mps: percent of a GPU, usually
    };
    Kind kind = Kind::shard;
    int parts = 1;
    // Of a run, from the nodes of its queue when it was submitted:
    std::optional<int> per_gpu;              ///< the number of parts of one GPU; unset: unknown
    std::optional<int> cpus;                 ///< that come with the share
    std::optional<std::uint64_t> memory_mib; ///< likewise

    bool operator==(const GpuShare&) const = default;
};
constexpr GpuShare::Kind last_of(GpuShare::Kind)
{
    return GpuShare::Kind::mps;
}

/// Slurm's name of the resource: `shard` or `mps`.
std::string_view word(GpuShare::Kind kind);
std::optional<GpuShare::Kind> share_kind(std::string_view word);

/// Value of `-g`: the number of GPUs per node, optionally of one model or with a minimum memory
/// size; or a share of one GPU.
struct GpuRequest {
    int count = 1;                               ///< that the run can see: 1 of a share
    std::optional<std::string> model;            ///< Slurm's gres type
    std::optional<std::uint64_t> min_memory_mib; ///< `16G+`: any model with at least this memory
    std::optional<GpuShare> share{};
    std::optional<std::string> mig{}; ///< `mig:1g.10gb`: models whose name ends with this profile

    bool operator==(const GpuRequest&) const = default;
};

/// The time of all GPUs of a node that `length` takes. A share takes its fraction of one GPU, or
/// all of it if the number of its parts is not known.
std::chrono::milliseconds gpu_time(const GpuRequest& request, std::chrono::milliseconds length);

/// Parses `1`, `2`, `0`, `k80`, `k80:2`, `16G+`, `16G+:2`, `shard:1`, `mps:50`, `mig:1g.10gb` or
/// `mig:1g.10gb:2`. `usage` with the reason for anything else.
Result<GpuRequest> parse_gpu_request(std::string_view text);

/// Slurm's name for the request, without a prefix: `gpu:2`, `gpu:k80:2` or `shard:1`; empty for no
/// GPU. A minimum memory size and a MIG profile have no such name.
std::string gres_text(const GpuRequest& request);

/// The inverse: text that parses to `request`.
std::string to_text(const GpuRequest& request);

} // namespace gpuq
