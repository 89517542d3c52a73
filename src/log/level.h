// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuq::log {

/// `off` is a threshold only: no record has it.
enum class Level : std::uint8_t { trace, debug, info, warning, error, off };
constexpr Level last_of(Level)
{
    return Level::off;
}

/// The part of gpuq that a record is about; each has a threshold of its own.
enum class Part : std::uint8_t {
    command,    ///< commands, settings, the state directory
    client,     ///< the session of a client with its run
    remote,     ///< `--host`: ssh, the holder, forwarded ports
    slurm,      ///< requests to Slurm and commands of Slurm
    supervisor, ///< the processes of a job
    chain,      ///< checkpoints and further links
    tickets,    ///< Kerberos tickets and tokens
    samples,    ///< measurements
    cluster,    ///< `gpuq cluster` and `gpuq policy`
};
constexpr std::size_t k_parts = 9;

/// The name of a level or part, as in GPUQ_LOG and in each record.
std::string_view name_of(Level level);
std::string_view name_of(Part part);

/// The lowest level that is written, for each part.
struct Levels {
    std::array<Level, k_parts> of_part;

    static Levels all(Level level);
    Level of(Part part) const { return of_part[static_cast<std::size_t>(part)]; }
    bool operator==(const Levels&) const = default;
};

/// Parses GPUQ_LOG: `debug`, or `debug,remote=trace,slurm=off`: a level for all parts and levels
/// for single ones, in any order. Parts without a level keep that of `otherwise`. `usage` for an
/// unknown name.
Result<Levels> parse_levels(std::string_view text, const Levels& otherwise);

} // namespace gpuq::log
