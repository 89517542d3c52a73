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

/// Two columns, indented.
std::string columns(const Rows& rows)
{
    std::size_t width = 0;
    for (const auto& [left, right] : rows) {
        width = std::max(width, left.size());
    }
    std::string text;
    for (const auto& [left, right] : rows) {
        text += fmt::format("  {:<{}}  {}\n", left, width, right);
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
        rows.emplace_back(verb->synopsis, verb->summary);
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
