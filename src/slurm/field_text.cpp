// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/field_text.h"

#include "core/strings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace gpuq::slurm {
namespace {

std::optional<long> number_in(std::string_view text)
{
    long number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && rest == text.data() + text.size() ? std::optional(number)
                                                                     : std::nullopt;
}

} // namespace

std::string sorted(std::string_view list)
{
    std::set<std::string_view> names;
    for (const std::string_view name : split(list, ",")) {
        if (!name.empty()) {
            names.insert(name);
        }
    }
    return fmt::format("{}", fmt::join(names, ","));
}

std::string minutes_in(const std::string& text)
{
    const auto dash = text.find('-');
    const auto days = dash == std::string::npos ? std::optional(0L)
                                                : number_in(std::string_view(text).substr(0, dash));
    const auto parts =
        split(std::string_view(text).substr(dash == std::string::npos ? 0 : dash + 1), ":");
    if (!days || parts.size() != 3) {
        return text;
    }
    const auto hours = number_in(parts[0]);
    const auto minutes = number_in(parts[1]);
    return hours && minutes ? std::to_string((*days * 24 + *hours) * 60 + *minutes) : text;
}

void flag_arguments(std::string_view keyword, std::string_view actual, std::string_view desired,
                    std::vector<std::string>& arguments)
{
    const auto add = [&](std::string_view from, std::string_view besides, char sign) {
        for (const std::string_view flag : split(from, ",")) {
            const auto others = split(besides, ",");
            if (!flag.empty() && std::find(others.begin(), others.end(), flag) == others.end()) {
                arguments.push_back(fmt::format("{}{}={}", keyword, sign, flag));
            }
        }
    };
    add(actual, desired, '-');
    add(desired, actual, '+');
}

} // namespace gpuq::slurm
