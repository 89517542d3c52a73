// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuq {

/// The number that `text` spells in decimal digits alone: no sign, blank, point or exponent, no
/// overflow. Nothing for any other text.
inline std::optional<std::uint64_t> whole_number(std::string_view text)
{
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc{} || rest != end) {
        return std::nullopt;
    }
    return value;
}

} // namespace gpuq
