// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <string>
#include <string_view>

namespace gpuq {

/// Parses a duration: `90` (minutes), `2h`, `90m`, `30s`, `7d`, `1h30m`, and Slurm's `1:30:00`,
/// `1-12`, `1-12:30`, `1-12:30:00`. At most ten years. `usage` with the reason for anything else;
/// `2:30` is refused because it is ambiguous.
Result<std::chrono::seconds> parse_duration(std::string_view text);

/// The same for `-t`: whole minutes, rounded up like Slurm does; zero is refused.
Result<std::chrono::minutes> parse_walltime(std::string_view text);

/// For display: `45 min`, `2 h`, `1 day 12 h`.
std::string to_text(std::chrono::minutes walltime);

/// For Slurm: `1-12:00:00`.
std::string slurm_time(std::chrono::minutes walltime);

} // namespace gpuq
