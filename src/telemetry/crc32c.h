// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuq::telemetry {

/// CRC-32C (Castagnoli). `before`: the checksum of the preceding bytes.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// The masked form stored in TensorFlow's record files, so that data may itself contain checksums.
std::uint32_t masked(std::uint32_t crc);

} // namespace gpuq::telemetry
