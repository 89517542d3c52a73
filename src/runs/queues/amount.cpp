// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/amount.h"

#include <algorithm>
#include <cstddef>

namespace gpuq {

void Amount::take(const Amount& other)
{
    cpus -= std::min(cpus, other.cpus);
    memory_mib -= std::min(memory_mib, other.memory_mib);
    for (const auto& [model, count] : other.gpus) {
        gpus[model] -= std::min(gpus[model], count);
    }
    for (std::size_t i = 0; i < std::min(parts.size(), other.parts.size()); ++i) {
        parts[i] -= std::min(parts[i], other.parts[i]);
    }
    count_whole_gpus();
}

void Amount::give(const Amount& other, const Amount& most)
{
    cpus = std::min(cpus + other.cpus, most.cpus);
    memory_mib = std::min(memory_mib + other.memory_mib, most.memory_mib);
    for (const auto& [model, count] : other.gpus) {
        const auto total = most.gpus.find(model);
        gpus[model] = std::min(gpus[model] + count, total == most.gpus.end() ? 0 : total->second);
    }
    for (std::size_t i = 0; i < std::min(parts.size(), other.parts.size()); ++i) {
        parts[i] = std::min(parts[i] + other.parts[i], most.parts[i]);
    }
    count_whole_gpus();
}

void Amount::mark_whole(int count, Amount& held) const
{
    held.parts.resize(parts.size());
    for (std::size_t i = 0; i < parts.size() && count > 0; ++i) {
        if (parts[i] == per_gpu && held.parts[i] == 0) {
            held.parts[i] = per_gpu;
            --count;
        }
    }
}

bool Amount::mark_shares(const GpuShare& share, Amount& held) const
{
    const auto first =
        std::find_if(parts.begin(), parts.end(), [&](int free) { return free >= share.parts; });
    if (share.kind != kind || first == parts.end()) {
        return false;
    }
    held.parts.resize(parts.size());
    held.parts[static_cast<std::size_t>(first - parts.begin())] = share.parts;
    return true;
}

/// A GPU with a share in use is not available as a whole.
void Amount::count_whole_gpus()
{
    if (per_gpu > 0 && !gpus.empty()) {
        gpus.begin()->second = static_cast<int>(std::count(parts.begin(), parts.end(), per_gpu));
    }
}

} // namespace gpuq
