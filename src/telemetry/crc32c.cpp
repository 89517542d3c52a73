// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace gpuq::telemetry {
namespace {

constexpr std::size_t k_width = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, k_width>;

/// Table N: the contribution of a byte that N other bytes follow ("slicing by 8").
constexpr Tables k_tables = [] {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
        }
        tables[0][byte] = crc;
    }
    for (std::size_t table = 1; table < k_width; ++table) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t crc = tables[table - 1][byte];
            tables[table][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
        }
    }
    return tables;
}();

} // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before)
{
    static_assert(std::endian::native == std::endian::little);
    std::uint32_t crc = ~before;
    for (; bytes.size() >= k_width; bytes.remove_prefix(k_width)) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), sizeof word);
        word ^= crc;
        crc = 0;
        for (std::size_t byte = 0; byte < k_width; ++byte) {
            crc ^= k_tables[k_width - 1 - byte][(word >> (8 * byte)) & 0xff];
        }
    }
    for (const char c : bytes) {
        crc = (crc >> 8) ^ k_tables[0][(crc ^ static_cast<unsigned char>(c)) & 0xff];
    }
    return ~crc;
}

std::uint32_t masked(std::uint32_t crc)
{
    return std::rotr(crc, 15) + 0xa282ead8U;
}

} // namespace gpuq::telemetry
