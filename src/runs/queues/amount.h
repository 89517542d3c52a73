// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gpuq {

/// Free resources of a node, or the part of them that a job has.
struct Amount {
    int cpus = 0;
    std::uint64_t memory_mib = 0;
    std::map<std::string, int> gpus; ///< by model
    std::vector<int> parts; ///< the shares of each GPU; empty: not shared, or of several models
    int per_gpu = 0;        ///< of a node: the number of shares of a GPU
    GpuShare::Kind kind = GpuShare::Kind::shard; ///< of these

    void take(const Amount& other);
    /// The inverse, up to `most`.
    void give(const Amount& other, const Amount& most);

    /// Marks `count` GPUs of this node without a share in use as those of a job.
    void mark_whole(int count, Amount& held) const;
    /// Marks shares of one GPU of this node as those of a job: of the first one with enough, as
    /// Slurm does. False if there is none.
    bool mark_shares(const GpuShare& share, Amount& held) const;

    bool operator==(const Amount&) const = default;

private:
    void count_whole_gpus();
};

} // namespace gpuq
