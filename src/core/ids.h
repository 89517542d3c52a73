// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

namespace gpuq {

/// Wall-clock time, to the microsecond where the source has it. UTC everywhere but on screens.
using Time = std::chrono::sys_time<std::chrono::microseconds>;

/// A Slurm job id. 0 never names a job.
struct JobId {
    std::uint32_t value = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a defaulted <=>
    auto operator<=>(const JobId&) const = default;
};

/// 1 for the first Slurm job of a run, 2 for the next of its chain, ...
struct LinkNumber {
    int value = 1;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a defaulted <=>
    auto operator<=>(const LinkNumber&) const = default;
};

/// The two output streams of a program.
enum class Stream : std::uint8_t { out, err };

} // namespace gpuq
