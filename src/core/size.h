// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuq {

/// An amount of memory as for Slurm's --mem, in MiB: `16G`, `500M`, `2T`, `4096K` (rounded up), a
/// plain number for MiB; `GB` and `GiB` mean the same. 0 is the node's whole memory. `usage` with
/// the reason for anything else.
Result<std::uint64_t> parse_memory_mib(std::string_view text);

/// For people: `16 GiB`, `500 MiB`.
std::string memory_text(std::uint64_t mib);

/// An amount of disk in bytes, for people: `512 bytes`, `1.5 GiB`.
std::string bytes_text(std::uint64_t bytes);

} // namespace gpuq
