// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/strings.h"

#include <algorithm>

namespace gpuq {
namespace {

constexpr std::string_view k_white_space = " \t\n\v\f\r";

} // namespace

std::vector<std::string_view> split(std::string_view text, std::string_view separators)
{
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = text.find_first_of(separators);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string_view> fields(std::string_view text, std::string_view separators)
{
    auto parts = split(text, separators);
    std::erase(parts, std::string_view());
    return parts;
}

std::pair<std::string_view, std::string_view> cut(std::string_view text, char separator)
{
    const std::size_t end = std::min(text.find(separator), text.size());
    return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

std::string_view trimmed(std::string_view text)
{
    const std::size_t begin = std::min(text.find_first_not_of(k_white_space), text.size());
    text.remove_prefix(begin);
    return text.substr(0, text.find_last_not_of(k_white_space) + 1);
}

} // namespace gpuq
