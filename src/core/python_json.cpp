// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/python_json.h"

#include <algorithm>
#include <array>

namespace gpuq {

std::string json_of_python(std::string_view text)
{
    constexpr std::array<std::string_view, 3> k_keywords{"NaN", "Infinity", "-Infinity"};
    std::string plain;
    plain.reserve(text.size());
    bool is_quoted = false;
    while (!text.empty()) {
        const auto* const word =
            is_quoted ? k_keywords.end() : std::ranges::find_if(k_keywords, [&](const auto& one) {
                return text.starts_with(one);
            });
        if (word != k_keywords.end()) {
            plain += "null";
            text.remove_prefix(word->size());
            continue;
        }
        const std::size_t taken =
            is_quoted && text.front() == '\\' ? std::min<std::size_t>(2, text.size()) : 1;
        is_quoted = is_quoted != (text.front() == '"');
        plain += text.substr(0, taken);
        text.remove_prefix(taken);
    }
    return plain;
}

} // namespace gpuq
