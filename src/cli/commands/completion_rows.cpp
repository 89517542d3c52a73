// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/completion_rows.h"

#include "cli/commands/verbs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpuq::cli {
namespace {

std::vector<Option> built(const std::vector<Option>& options)
{
    std::vector<Option> rows;
    for (const Option& option : options) {
        if (option.state == Option::State::built) {
            rows.push_back(option);
        }
    }
    return rows;
}

/// The first operand in the verb's synopsis.
std::string_view first_operand(const Verb& verb)
{
    const std::size_t begin = verb.synopsis.find(verb.name) + verb.name.size() + 1;
    const std::string_view rest = begin < verb.synopsis.size() ? verb.synopsis.substr(begin) : "";
    return rest.substr(0, rest.find(' '));
}

} // namespace

std::vector<Option> options_of(const Verb& verb)
{
    return built(all_options(verb));
}

std::vector<Option> options_of_all()
{
    const auto global = global_options();
    return built({global.begin(), global.end()});
}

std::vector<std::string> choices_of(const Verb& verb)
{
    if (verb.synopsis.find("VERB") != std::string_view::npos) {
        return verb_names();
    }
    std::string_view word = first_operand(verb);
    std::vector<std::string> choices;
    if (word.find('|') == std::string_view::npos || word.starts_with('[')) {
        return choices;
    }
    while (true) {
        const std::size_t bar = word.find('|');
        choices.emplace_back(word.substr(0, bar));
        if (bar == std::string_view::npos) {
            return choices;
        }
        word.remove_prefix(bar + 1);
    }
}

bool takes_runs(const Verb& verb)
{
    return verb.synopsis.find(" RUN") != std::string_view::npos ||
           verb.synopsis.find("[RUN") != std::string_view::npos;
}

bool takes_program(const Verb& verb)
{
    return verb.order == Order::options_first;
}

std::vector<std::string> values_of(const Option& option)
{
    return option.name == "color" ? std::vector<std::string>{"auto", "always", "never"}
                                  : std::vector<std::string>{};
}

bool takes_file(const Option& option)
{
    return option.value == "IMAGE" || option.value == "DIR" || option.value == "FILE";
}

std::vector<std::string> verb_names()
{
    std::vector<std::string> names;
    for (const Verb* verb : verbs()) {
        names.emplace_back(verb->name);
    }
    return names;
}

std::string joined(const std::vector<std::string>& arguments, std::string_view separator)
{
    return fmt::format("{}", fmt::join(arguments, separator));
}

} // namespace gpuq::cli
