// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/completion.h"
#include "cli/completion_rows.h"
#include "cli/verbs.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

using Strings = std::vector<std::string>;

Strings spellings(const Option& option)
{
    Strings words;
    if (option.letter != 0) {
        words.push_back(fmt::format("-{}", option.letter));
    }
    words.push_back(fmt::format("--{}", option.name));
    return words;
}

std::string spellings(const std::vector<Option>& options)
{
    Strings words;
    for (const Option& option : options) {
        for (std::string& word : spellings(option)) {
            words.push_back(std::move(word));
        }
    }
    return joined(words);
}

/// A pattern for `case`: the options that take the next word as their value.
std::string with_values(const std::vector<Option>& options)
{
    Strings words;
    for (const Option& option : options) {
        if (!option.value.empty()) {
            words.push_back(joined(spellings(option), " | "));
        }
    }
    return joined(words, " | ");
}

/// Lines of `case $previous` for the options that take a value.
std::string values(const std::vector<Option>& options)
{
    std::string text;
    for (const Option& option : options) {
        if (option.value.empty()) {
            continue;
        }
        const Strings words = values_of(option);
        const std::string action = takes_file(option) ? "compopt -o default; "
                                   : words.empty()
                                       ? ""
                                       : fmt::format("_gpuq_words '{}'; ", joined(words));
        text += fmt::format("                {}) {}return ;;\n", joined(spellings(option), " | "),
                            action);
    }
    return text;
}

std::string operands(const Verb& verb)
{
    if (takes_program(verb)) {
        return "_gpuq_program";
    }
    return takes_runs(verb) ? fmt::format("_gpuq_words \"$({})\"", k_list_runs)
                            : fmt::format("_gpuq_words '{}'", joined(choices_of(verb)));
}

std::string verb_case(const Verb& verb)
{
    const auto options = options_of(verb);
    return fmt::format(R"(        {})
            case $previous in
{}            esac
            case $current in
                -*) _gpuq_words '{}' ;;
                *) {} ;;
            esac
            ;;
)",
                       verb.name, values(options), spellings(options), operands(verb));
}

/// Finds the first word of the program, for a verb that takes one.
std::string program_case(const Verb& verb)
{
    return fmt::format(R"(        {}:--) operand=$((i + 1)); break ;;
        {}:-*) case $word in {}) ((i++)) ;; esac ;;
        {}:*) operand=$i; break ;;
)",
                       verb.name, verb.name, with_values(options_of(verb)), verb.name);
}

constexpr std::string_view k_head = R"(# bash completion of gpuq, made by `gpuq completion bash`

_gpuq_words()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

# The program of `gpuq run` and its words: as the shell completes them alone.
_gpuq_program()
{
    if [ "$operand" -lt "$COMP_CWORD" ]; then
        if declare -F _command_offset >/dev/null; then
            _command_offset "$operand"
        else
            compopt -o default
        fi
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
    fi
}

)";

} // namespace

std::string bash_completion()
{
    std::string programs;
    std::string cases;
    for (const Verb* verb : verbs()) {
        programs += takes_program(*verb) ? program_case(*verb) : "";
        cases += verb_case(*verb);
    }
    return std::string(k_head) + fmt::format(R"(_gpuq()
{{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local verb='' operand=$COMP_CWORD word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        case $verb:$word in
        :-*) case $word in {}) ((i++)) ;; esac ;;
        :*) verb=$word ;;
{}        esac
    done
    if [ "$operand" -lt "$COMP_CWORD" ]; then
        _gpuq_program
        return
    fi
    case $verb in
        '')
            case $current in
                -*) _gpuq_words '{}' ;;
                *) _gpuq_words '{}' ;;
            esac
            ;;
{}    esac
}}
complete -F _gpuq gpuq
)",
                                             with_values(options_of_all()), programs,
                                             spellings(options_of_all()), joined(verb_names()),
                                             cases);
}

} // namespace gpuq::cli
