// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/limits.h"
#include "sim/placement.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace gpuq::sim {

inline constexpr Seconds k_never{std::numeric_limits<std::int64_t>::max() / 4};

enum class State { pending, running, over };

/// One job of a run, pending or running.
struct Link {
    std::size_t job = 0;
    int number = 1;
    bool requeued = false; ///< by Slurm, after a preemption: no new submission
    State state = State::pending;
    Seconds eligible{0};
    Seconds work{0}; ///< remaining
    const std::vector<int>* partitions = nullptr;
    Claim claim;
    int share = 0; ///< index of its user in FairShare

    // Running:
    int partition = -1;
    Need need;
    NodeSet nodes;
    std::vector<GpuParts> parts; ///< its GPUs on shared nodes
    double gpus = 0;             ///< a share counts as its fraction
    double weight = 1;           ///< of its GPUs, in fair share
    Seconds start{0};
    Seconds ends_by{0};       ///< start plus limit: all that Slurm knows
    Seconds finish{k_never};  ///< when it actually leaves
    bool cut = false;         ///< leaves before its work is done
    bool preempted = false;   ///< notified to leave for a job of a higher tier
    bool failed = false;      ///< lost with its node
    Seconds charged_until{0}; ///< its use is charged up to this time

    /// The planned start in this backfill cycle; zero: none.
    Seconds planned{0};
};

/// The links, by number. The memory of a block of numbers is released when all of its links are
/// over, so that a long trace needs no more than a short one.
class Links {
public:
    std::uint32_t add(Link link);
    /// Not for a link that is_over().
    Link& operator[](std::uint32_t number) { return block_of(number).links[number % k_block]; }
    const Link& operator[](std::uint32_t number) const
    {
        return block_of(number).links[number % k_block];
    }
    /// Marks a link as over; references to it become invalid.
    void finish(std::uint32_t number);
    bool is_over(std::uint32_t number) const
    {
        return !m_blocks[number / k_block] || (*this)[number].state == State::over;
    }

private:
    static constexpr std::uint32_t k_block = 256;
    struct Block {
        std::array<Link, k_block> links;
        std::uint32_t over = 0;
    };
    Block& block_of(std::uint32_t number) const { return *m_blocks[number / k_block]; }

    std::vector<std::unique_ptr<Block>> m_blocks;
    std::uint32_t m_count = 0;
};

} // namespace gpuq::sim
