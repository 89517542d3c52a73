// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// Parses an unsigned decimal number: digits only, without sign, blank, point or exponent. nullopt
/// for any other text and on overflow.
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

/// `1 GPU`, `2 GPUs`: for nouns with a regular plural.
inline std::string counted(std::uint64_t number, std::string_view thing)
{
    return std::to_string(number) + " " + std::string(thing) + (number == 1 ? "" : "s");
}

} // namespace gpuq
