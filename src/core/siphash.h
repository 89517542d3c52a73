// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gpuq {

using SipKey = std::array<unsigned char, 16>;

/// SipHash-2-4 (Aumasson and Bernstein, 2012): 64 bits that cannot be predicted without the key,
/// regardless of how many other results are known.
std::uint64_t siphash(const SipKey& key, std::string_view text);

} // namespace gpuq
