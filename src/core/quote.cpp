// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/quote.h"

#include <algorithm>

namespace gpuq {
namespace {

bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
}

} // namespace

std::string shell_quoted(std::string_view word)
{
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
        return std::string(word);
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

std::string shell_command(const std::vector<std::string>& arguments)
{
    std::string command;
    for (const std::string& word : arguments) {
        command += (command.empty() ? "" : " ") + shell_quoted(word);
    }
    return command;
}

} // namespace gpuq
