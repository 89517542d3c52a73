// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gpuq::tune {
namespace {

constexpr std::size_t k_context = 3;

/// With their line ends.
std::vector<std::string_view> lines_of(std::string_view text)
{
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return lines;
}

std::string line_text(char mark, std::string_view line)
{
    return fmt::format("{}{}{}", mark, line,
                       line.ends_with('\n') ? "" : "\n\\ No newline at end of file\n");
}

} // namespace

std::string unified_diff(std::string_view before, std::string_view after,
                         const std::string& before_name, const std::string& after_name)
{
    const auto old_lines = lines_of(before);
    const auto new_lines = lines_of(after);
    const std::size_t count = std::min(old_lines.size(), new_lines.size());
    const auto next_change = [&](std::size_t line) {
        while (line < count && old_lines[line] == new_lines[line]) {
            ++line;
        }
        return line;
    };
    std::string text;
    for (std::size_t change = next_change(0); change < count;) {
        const std::size_t begin = change - std::min(change, k_context);
        std::size_t end = change;
        for (; change < count && change <= end + 2 * k_context; change = next_change(change + 1)) {
            end = change;
        }
        end = std::min(count, end + 1 + k_context);
        if (text.empty()) {
            text = fmt::format("--- {}\n+++ {}\n", before_name, after_name);
        }
        text += fmt::format("@@ -{0},{1} +{0},{1} @@\n", begin + 1, end - begin);
        for (std::size_t line = begin; line < end;) {
            if (old_lines[line] == new_lines[line]) {
                text += line_text(' ', old_lines[line++]);
                continue;
            }
            std::size_t last = line;
            while (last < end && old_lines[last] != new_lines[last]) {
                text += line_text('-', old_lines[last++]);
            }
            for (; line < last; ++line) {
                text += line_text('+', new_lines[line]);
            }
        }
    }
    return text;
}

} // namespace gpuq::tune
