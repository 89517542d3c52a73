// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/completion.h"
#include "cli/completion_rows.h"
#include "cli/verbs.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

std::string quoted(std::string_view text)
{
    std::string result = "'";
    for (const char c : text) {
        result += c == '\'' || c == '\\' ? "\\" : "";
        result += c;
    }
    return result + "'";
}

std::string row(const Option& option, const std::string& condition)
{
    std::string text = fmt::format("complete -c gpuq{} -l {}", condition, option.name);
    if (option.letter != 0) {
        text += fmt::format(" -s {}", option.letter);
    }
    if (!option.value.empty()) {
        text += takes_file(option) ? " -r -F" : " -x";
    }
    if (const auto words = values_of(option); !words.empty()) {
        text += fmt::format(" -a '{}'", joined(words));
    }
    return text + fmt::format(" -d {}\n", quoted(option.help));
}

std::string operands(const Verb& verb, const std::string& condition)
{
    if (takes_program(verb)) {
        return fmt::format("complete -c gpuq{} -F -a '(__fish_complete_command)'\n", condition);
    }
    if (takes_runs(verb)) {
        return fmt::format("complete -c gpuq{} -a '({})'\n", condition, k_list_runs);
    }
    const auto choices = choices_of(verb);
    return choices.empty()
               ? ""
               : fmt::format("complete -c gpuq{} -a '{}'\n", condition, joined(choices));
}

std::string verb_rows(const Verb& verb)
{
    const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", verb.name);
    std::string text = fmt::format("complete -c gpuq -n __fish_use_subcommand -a {} -d {}\n",
                                   verb.name, quoted(verb.summary));
    for (const Option& option : verb.options) {
        text += option.state == Option::State::built ? row(option, condition) : "";
    }
    return text + operands(verb, condition);
}

} // namespace

std::string fish_completion()
{
    std::string text = "# fish completion of gpuq, made by `gpuq completion fish`\n"
                       "complete -c gpuq -f\n";
    for (const Option& option : options_of_all()) {
        text += row(option, "");
    }
    for (const Verb* verb : verbs()) {
        text += verb_rows(*verb);
    }
    return text;
}

} // namespace gpuq::cli
