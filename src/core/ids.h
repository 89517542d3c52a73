// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

namespace gpuq {

/// Wall-clock time in UTC, with microseconds where the source provides them. Converted to local
/// time only for display.
using Time = std::chrono::sys_time<std::chrono::microseconds>;

/// A Slurm job id; 0 is never valid.
struct JobId {
    std::uint32_t value = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a defaulted <=>
    auto operator<=>(const JobId&) const = default;
};

/// 1 for the first Slurm job of a run, 2 for the second in its chain, and so on.
struct LinkNumber {
    int value = 1;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a defaulted <=>
    auto operator<=>(const LinkNumber&) const = default;
};

/// The two output streams of a program.
enum class Stream : std::uint8_t { out, err };
constexpr Stream last_of(Stream)
{
    return Stream::err;
}

} // namespace gpuq
