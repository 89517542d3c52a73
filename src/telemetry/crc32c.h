// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuq::telemetry {

/// CRC-32C (Castagnoli). `before`: that of the bytes in front of these.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// As TensorFlow's record files store it, so that a checksum of checksums is none.
std::uint32_t masked(std::uint32_t crc);

} // namespace gpuq::telemetry
