// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/program_arguments.h"

#include "core/strings.h"
#include "runs/program_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace gpuq {
namespace {

std::string_view base_name(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

bool is_number(std::string_view text)
{
    text.remove_prefix(text.starts_with('+') ? 1 : 0);
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && rest == text.data() + text.size();
}

bool is_option(std::string_view word)
{
    return word.size() > 1 && word.front() == '-' && !is_number(word);
}

bool is_letter(char c)
{
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// `lr=0.1`, `+model/backbone=resnet`, `~trainer.logger=x`; not a path, a URL or code.
bool is_assignment(std::string_view word)
{
    std::string_view name = cut(word, '=').first;
    const auto is_name_byte = [](char c) {
        return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("_.-/@").find(c) != std::string_view::npos;
    };
    name.remove_prefix(std::min(name.find_first_not_of("+~"), name.size()));
    return name.size() < word.size() && !name.empty() && (is_letter(name[0]) || name[0] == '_') &&
           std::all_of(name.begin(), name.end(), is_name_byte);
}

/// `-j4`: a letter and a number in one word.
bool is_glued(std::string_view word)
{
    return word.size() > 2 && word[0] == '-' && is_letter(word[1]) && is_number(word.substr(2));
}

/// Index of the script, or of the `-m` before a module; the number of words if there is none.
std::size_t find_script(const std::vector<std::string>& program)
{
    const auto size = size_of_program(program);
    if (!size || *size < 2) {
        return program.size();
    }
    const std::size_t last = *size - 1;
    const std::string& before = program[last - 1];
    if (before == "-m" || before == "--module") {
        return last - 1;
    }
    const bool is_code = is_option(before) && !is_script_name(program[last]); // bash -c CODE
    return is_code || is_option(program[last]) ? program.size() : last;
}

/// The words of a command line from `begin` to `end`, as arguments.
class Parser {
public:
    Parser(const std::vector<std::string>& shown, const std::vector<std::string>& raw,
           std::vector<ProgramArgument>& arguments)
        : m_shown(shown)
        , m_raw(raw)
        , m_arguments(arguments)
    {
    }

    void parse(std::size_t begin, std::size_t end, const std::string& prefix)
    {
        m_prefix = prefix;
        int position = 0;
        bool options_end = false;
        for (std::size_t i = begin; i < end; ++i) {
            const std::string& word = m_shown[i];
            if (!options_end && word == "--") {
                options_end = true;
            } else if (!options_end && is_option(word)) {
                i = option(i, end);
            } else if (is_assignment(word)) {
                assignment(i);
            } else {
                add(fmt::format("argument {}", ++position), word, m_raw[i]);
            }
        }
    }

private:
    /// Returns the index of its last word.
    std::size_t option(std::size_t at, std::size_t end)
    {
        const std::string& word = m_shown[at];
        if (word.find('=') != std::string::npos) {
            assignment(at);
            return at;
        }
        if (is_glued(word)) {
            add(word.substr(0, 2), word.substr(2), word.substr(2));
            return at;
        }
        ProgramArgument& argument = named(word);
        const auto is_value = [&](std::size_t i) {
            return i < end && m_shown[i] != "--" && !is_option(m_shown[i]);
        };
        if (!is_value(at + 1)) {
            return at;
        }
        append(argument, m_shown[at + 1], m_raw[at + 1]);
        std::size_t last = at + 1;
        while (is_number(m_shown[last]) && is_value(last + 1) && is_number(m_shown[last + 1])) {
            ++last;
            append(argument, m_shown[last], m_raw[last]);
        }
        return last;
    }

    void assignment(std::size_t at)
    {
        const auto [name, value] = cut(m_shown[at], '=');
        add(std::string(name), value, cut(m_raw[at], '=').second);
    }

    void add(const std::string& name, std::string_view shown, std::string_view raw)
    {
        append(named(name), shown, raw);
    }

    ProgramArgument& named(const std::string& name)
    {
        const std::string full = m_prefix + name;
        const auto found = std::find_if(m_arguments.begin(), m_arguments.end(),
                                        [&](const auto& one) { return one.name == full; });
        if (found == m_arguments.end()) {
            return m_arguments.emplace_back(ProgramArgument{full, 0, 1, {}, {}});
        }
        ++found->times;
        return *found;
    }

    static void append(ProgramArgument& argument, std::string_view shown, std::string_view raw)
    {
        const std::string_view gap = argument.values++ > 0 ? " " : "";
        argument.shown.append(gap).append(shown);
        argument.raw.append(gap).append(raw);
    }

    const std::vector<std::string>& m_shown;
    const std::vector<std::string>& m_raw;
    std::vector<ProgramArgument>& m_arguments;
    std::string m_prefix;
};

} // namespace

ParsedProgram parse_program(const std::vector<std::string>& program, const Redactor& redactor)
{
    ParsedProgram parsed;
    if (program.empty()) {
        return parsed;
    }
    // The words without secrets decide which are names: a secret may begin with a dash.
    const std::vector<std::string> shown = redactor.redact_arguments(program);
    Parser parser(shown, program, parsed.arguments);
    parsed.program = shown.front();
    std::size_t begin = 1;
    if (const std::size_t script = find_script(shown); script < shown.size()) {
        parser.parse(1, script, std::string(base_name(shown.front())) + " ");
        const bool is_module = shown[script].starts_with("-");
        parsed.script = is_module ? "-m " + shown[script + 1] : shown[script];
        begin = script + (is_module ? 2 : 1);
    }
    parser.parse(begin, shown.size(), "");
    return parsed;
}

} // namespace gpuq
