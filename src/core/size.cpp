// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/size.h"

#include "core/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq {
namespace {

constexpr std::uint64_t k_kib_per_mib = 1024;
constexpr std::uint64_t k_most_mib = std::uint64_t{1} << 40; // one exbibyte

/// KiB per unit; 0 for an unknown unit.
std::uint64_t kib_of(std::string_view unit)
{
    if (unit.ends_with("iB")) {
        unit.remove_suffix(2);
    } else if (unit.size() == 2 && unit.ends_with("B")) {
        unit.remove_suffix(1);
    }
    if (unit.empty() || unit == "M" || unit == "m") {
        return k_kib_per_mib;
    }
    if (unit == "K" || unit == "k") {
        return 1;
    }
    if (unit == "G" || unit == "g") {
        return k_kib_per_mib * 1024;
    }
    return unit == "T" || unit == "t" ? k_kib_per_mib * 1024 * 1024 : 0;
}

Error no_size(std::string_view text, std::string_view reason)
{
    return fail(Error::Kind::usage,
                fmt::format("'{}' is not an amount of memory: {}", text, reason));
}

} // namespace

Result<std::uint64_t> parse_memory_mib(std::string_view text)
{
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::uint64_t unit = text.substr(end) == "iB" ? 0 : kib_of(text.substr(end));
    if (end == 0 || unit == 0) {
        return no_size(text, "write it like 16G or 500M");
    }
    const auto number = whole_number(text.substr(0, end));
    if (!number || *number > k_most_mib * k_kib_per_mib / unit) {
        return no_size(text, "it is more than any node has");
    }
    return (*number * unit + k_kib_per_mib - 1) / k_kib_per_mib;
}

std::string memory_text(std::uint64_t mib)
{
    const bool whole_gib = mib >= 1024 && mib % 1024 == 0;
    return whole_gib ? fmt::format("{} GiB", mib / 1024) : fmt::format("{} MiB", mib);
}

std::string bytes_text(std::uint64_t bytes)
{
    constexpr std::array k_units = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    constexpr double k_step = 1024;
    if (bytes < static_cast<std::uint64_t>(k_step)) {
        return fmt::format("{} bytes", bytes);
    }
    double value = static_cast<double>(bytes) / k_step;
    std::size_t unit = 0;
    while (value >= k_step && unit + 1 < k_units.size()) {
        value /= k_step;
        ++unit;
    }
    return fmt::format("{:.1f} {}", value, k_units[unit]);
}

} // namespace gpuq
