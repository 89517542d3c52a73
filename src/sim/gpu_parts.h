// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuq::sim {

/// The free shares of each GPU of a node, or those that a job has: a byte for each GPU.
class GpuParts {
public:
    static constexpr int k_most_gpus = 8;
    static constexpr int k_most_parts = 100; ///< of a GPU

    GpuParts() = default;
    /// The same number of each GPU.
    GpuParts(int gpus, int parts)
    {
        for (int gpu = 0; gpu < gpus; ++gpu) {
            add(gpu, parts);
        }
    }

    int on(int gpu) const { return static_cast<int>(m_bytes >> (gpu * 8) & 0xff); }
    void add(int gpu, int parts) { m_bytes += static_cast<std::uint64_t>(parts) << (gpu * 8); }

    /// Of one GPU.
    int most() const
    {
        int most = 0;
        for (std::uint64_t rest = m_bytes; rest != 0; rest >>= 8) {
            most = std::max(most, static_cast<int>(rest & 0xff));
        }
        return most;
    }
    int sum() const
    {
        int sum = 0;
        for (std::uint64_t rest = m_bytes; rest != 0; rest >>= 8) {
            sum += static_cast<int>(rest & 0xff);
        }
        return sum;
    }
    /// The number of GPUs with all of their `per_gpu` shares.
    int whole(int per_gpu) const
    {
        int count = 0;
        for (std::uint64_t rest = m_bytes; rest != 0; rest >>= 8) {
            count += static_cast<int>(rest & 0xff) == per_gpu ? 1 : 0;
        }
        return count;
    }

    GpuParts& operator+=(const GpuParts& other)
    {
        m_bytes += other.m_bytes;
        return *this;
    }
    GpuParts& operator-=(const GpuParts& other)
    {
        m_bytes -= other.m_bytes;
        return *this;
    }
    bool operator==(const GpuParts&) const = default;

private:
    std::uint64_t m_bytes = 0;
};

} // namespace gpuq::sim
