// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuq {

/// Parses an amount of memory as for Slurm's --mem, to MiB: `16G`, `500M`, `2T`, `4096K` (rounded
/// up), or a plain number of MiB; `GB` and `GiB` are accepted too. 0 means all memory of the node.
/// `usage` with the reason for anything else.
Result<std::uint64_t> parse_memory_mib(std::string_view text);

/// For display: `16 GiB`, `500 MiB`.
std::string memory_text(std::uint64_t mib);

/// For display: `512 bytes`, `1.5 GiB`.
std::string bytes_text(std::uint64_t bytes);

} // namespace gpuq
