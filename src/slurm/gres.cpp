// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/gres.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace gpuq::slurm {
namespace {

/// Removes and returns the text before the next `separator` outside parentheses.
std::string_view take(std::string_view& text, char separator)
{
    int depth = 0;
    std::size_t end = 0;
    for (; end < text.size() && (depth > 0 || text[end] != separator); ++end) {
        depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    }
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
}

std::optional<int> number(std::string_view text)
{
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

std::optional<Gres> parse_item(std::string_view item)
{
    for (const std::string_view prefix : {"gres/", "gres:"}) {
        if (item.starts_with(prefix)) {
            item.remove_prefix(prefix.size());
        }
    }
    item = item.substr(0, item.find('('));
    if (take(item, ':') != "gpu") {
        return std::nullopt;
    }
    Gres gres{"", 1};
    while (!item.empty()) {
        const std::string_view word = take(item, ':');
        if (const auto count = number(word)) {
            gres.count = *count;
        } else if (word != "no_consume") {
            gres.model = word;
        }
    }
    return gres;
}

} // namespace

std::vector<Gres> parse_gres(std::string_view text)
{
    std::vector<Gres> found;
    while (!text.empty()) {
        if (const auto gres = parse_item(take(text, ','))) {
            found.push_back(*gres);
        }
    }
    return found;
}

} // namespace gpuq::slurm
