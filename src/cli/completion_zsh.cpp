// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/completion.h"
#include "cli/completion_rows.h"
#include "cli/verbs.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

/// Escapes text for use inside `[...]` or between colons of _arguments, in single quotes.
std::string quoted(std::string_view text)
{
    std::string result;
    for (const char c : text) {
        const bool special = c == '[' || c == ']' || c == ':' || c == '\\';
        result += special ? "\\" : "";
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return result;
}

std::string value_of(const Option& option)
{
    if (option.value.empty()) {
        return "";
    }
    const auto words = values_of(option);
    const std::string action = takes_file(option) ? "_files"
                               : words.empty()    ? " "
                                                  : fmt::format("({})", joined(words));
    return fmt::format(":{}:{}", quoted(option.value), action);
}

/// Rows for _arguments: `'*--time=[how long]:TIME: '`.
std::string rows(const std::vector<Option>& options)
{
    std::string text;
    for (const Option& option : options) {
        const std::string tail = fmt::format("[{}]{}' \\\n", quoted(option.help), value_of(option));
        const bool value = !option.value.empty();
        text += fmt::format("        '*--{}{}{}", option.name, value ? "=" : "", tail);
        if (option.letter != 0) {
            text += fmt::format("        '*-{}{}{}", option.letter, value ? "+" : "", tail);
        }
    }
    return text;
}

std::string operands(const Verb& verb)
{
    if (takes_program(verb)) {
        return "'(-)1:program:_command_names -e' '*::argument:_normal'";
    }
    if (takes_runs(verb)) {
        return fmt::format("\"*:run:($({}))\"", k_list_runs);
    }
    const auto choices = choices_of(verb);
    return choices.empty() ? "'*: :'" : fmt::format("'1:word:({})'", joined(choices));
}

std::string verb_case(const Verb& verb)
{
    return fmt::format("    {})\n        _arguments -s -S {}\\\n{}        {}\n        ;;\n",
                       verb.name, takes_program(verb) ? "-A '-*' " : "", rows(options_of(verb)),
                       operands(verb));
}

} // namespace

std::string zsh_completion()
{
    std::string described;
    std::string cases;
    for (const Verb* verb : verbs()) {
        described += fmt::format("        '{}:{}'\n", verb->name, quoted(verb->summary));
        cases += verb_case(*verb);
    }
    return fmt::format(R"(#compdef gpuq
# zsh completion of gpuq, made by `gpuq completion zsh`

_gpuq()
{{
    local curcontext=$curcontext state line
    local -a verbs
    verbs=(
{}    )
    _arguments -s -C -A '-*' \
{}        '1:verb:->verb' \
        '*::word:->words' && return
    if [[ $state == verb ]]; then
        _describe verb verbs
        return
    fi
    case $words[1] in
{}    esac
}}

if [[ $funcstack[1] == _gpuq ]]; then
    _gpuq "$@"
else
    compdef _gpuq gpuq
fi
)",
                       described, rows(options_of_all()), cases);
}

} // namespace gpuq::cli
