// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/arguments.h"

#include "sweeps/parameters.h"

#include <algorithm>
#include <functional>

namespace gpuq::sweeps {
namespace {

/// Copies `word`; each placeholder is replaced by the result of `value_of` for the index of its
/// parameter.
std::string replaced(const std::string& word, const std::vector<std::string>& names,
                     const std::function<std::string(std::size_t)>& value_of)
{
    std::string text;
    for (std::size_t at = 0; at < word.size();) {
        const std::size_t end = word[at] == '{' ? word.find('}', at) : std::string::npos;
        if (end == std::string::npos) {
            text += word[at++];
            continue;
        }
        const bool is_escaped = word.compare(at, 2, "{{") == 0 && word.compare(end, 2, "}}") == 0;
        const std::size_t begin = at + (is_escaped ? 2 : 1);
        const std::string name = word.substr(begin, end - begin);
        const auto found = std::find(names.begin(), names.end(), name);
        if (is_escaped ? !check_parameter_name(name) : found == names.end()) {
            text += word[at++];
            continue;
        }
        text += is_escaped ? "{" + name + "}"
                           : value_of(static_cast<std::size_t>(found - names.begin()));
        at = end + (is_escaped ? 2 : 1);
    }
    return text;
}

} // namespace

std::vector<std::string> arguments_of_try(const std::vector<std::string>& command,
                                          const std::vector<std::string>& names,
                                          const Values& values)
{
    std::vector<std::string> arguments;
    arguments.reserve(command.size());
    for (const std::string& word : command) {
        arguments.push_back(replaced(word, names, [&](std::size_t i) { return values.at(i); }));
    }
    return arguments;
}

std::vector<std::string> unused_parameters(const std::vector<std::string>& command,
                                           const std::vector<std::string>& names)
{
    std::vector<bool> used(names.size(), false);
    for (const std::string& word : command) {
        (void)replaced(word, names, [&](std::size_t i) {
            used[i] = true;
            return std::string();
        });
    }
    std::vector<std::string> unused;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!used[i]) {
            unused.push_back(names[i]);
        }
    }
    return unused;
}

std::vector<std::pair<std::string, std::string>>
variables_of_try(std::size_t number, const std::vector<std::string>& names, const Values& values)
{
    std::vector<std::pair<std::string, std::string>> variables{
        {"GPUQ_TRY", std::to_string(number)}};
    for (std::size_t i = 0; i < names.size(); ++i) {
        variables.emplace_back("GPUQ_PARAM_" + names[i], values.at(i));
    }
    return variables;
}

std::string values_text(const std::vector<std::string>& names, const Values& values)
{
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) {
        text += (i == 0 ? "" : " ") + names[i] + "=" + values[i];
    }
    return text;
}

} // namespace gpuq::sweeps
