// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/help_text.h"

#include "cli/commands/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gpuq::cli {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t k_line = 79;
constexpr std::size_t k_widest_left = 28; ///< after a longer one, the text is on the next line

/// `text` broken at blanks, to the right of a column of `indent` characters.
std::string broken(std::string_view text, std::size_t indent)
{
    std::string result;
    while (text.size() > k_line - indent) {
        const auto at = text.rfind(' ', k_line - indent);
        if (at == std::string_view::npos) {
            break;
        }
        result += text.substr(0, at);
        result += "\n" + std::string(indent, ' ');
        text.remove_prefix(at + 1);
    }
    return result.append(text);
}

/// Two columns, indented.
std::string columns(const Rows& rows)
{
    std::size_t width = 0;
    for (const auto& [left, right] : rows) {
        width = std::max(width, left.size() > k_widest_left ? 0 : left.size());
    }
    const std::size_t indent = width + 4;
    std::string text;
    for (const auto& [left, right] : rows) {
        text += left.size() > width
                    ? fmt::format("  {}\n{:<{}}{}\n", left, "", indent, broken(right, indent))
                    : fmt::format("  {:<{}}  {}\n", left, width, broken(right, indent));
    }
    return text;
}

std::string spelling(const Option& option)
{
    const std::string letter = option.letter == 0 ? "    " : fmt::format("-{}, ", option.letter);
    const std::string value = option.value.empty() ? "" : fmt::format(" {}", option.value);
    return fmt::format("{}--{}{}", letter, option.name, value);
}

std::string options_text(std::span<const Option> options)
{
    Rows rows;
    for (const Option& option : options) {
        if (option.state == Option::State::built) {
            rows.emplace_back(spelling(option), option.help);
        }
    }
    return columns(rows);
}

} // namespace

std::string help_text()
{
    Rows rows;
    for (const Verb* verb : verbs()) {
        rows.emplace_back(verb->name, verb->summary);
    }
    return fmt::format("gpuq: run programs on the GPUs of a Slurm cluster\n\n{}\n"
                       "Global options:\n{}\n"
                       "See gpuq help VERB, man gpuq and man gpuq-run.\n",
                       columns(rows), options_text(global_options()));
}

std::string help_text(const Verb& verb)
{
    const std::string own =
        verb.options.empty() ? "" : fmt::format("\nOptions:\n{}", options_text(verb.options));
    return fmt::format("{}\n\n{}\n{}\nGlobal options:\n{}", verb.synopsis, verb.summary, own,
                       options_text(global_options()));
}

} // namespace gpuq::cli
