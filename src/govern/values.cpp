// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/values.h"

#include "core/host_list.h"
#include "core/lower_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace gpuq::govern {

std::set<std::string> as_set(std::string_view list)
{
    std::set<std::string> names;
    while (!list.empty()) {
        const std::string_view name = list.substr(0, list.find(','));
        list.remove_prefix(std::min(name.size() + 1, list.size()));
        if (!name.empty()) {
            names.emplace(name);
        }
    }
    return names;
}

std::string joined(const std::set<std::string>& names)
{
    return fmt::format("{}", fmt::join(names, ","));
}

std::map<std::string, double> as_amounts(std::string_view tres)
{
    std::map<std::string, double> amounts;
    for (const std::string& item : as_set(tres)) {
        const auto sign = item.rfind('=');
        double amount = 0;
        const char* const end = item.data() + item.size();
        if (sign != std::string::npos &&
            std::from_chars(item.data() + sign + 1, end, amount).ec == std::errc()) {
            amounts[lower_case(item.substr(0, sign))] = amount;
        }
    }
    return amounts;
}

std::string joined(const std::map<std::string, double>& amounts)
{
    std::vector<std::string> items;
    for (const auto& [name, amount] : amounts) {
        items.push_back(fmt::format("{}={}", name, amount));
    }
    return fmt::format("{}", fmt::join(items, ","));
}

std::set<std::string> as_nodes(const std::string& list, const std::vector<std::string>& all_nodes)
{
    if (list == "ALL") {
        return {all_nodes.begin(), all_nodes.end()};
    }
    const auto nodes = expand_hosts(list);
    return nodes ? std::set<std::string>(nodes->begin(), nodes->end())
                 : std::set<std::string>{list};
}

std::optional<std::int64_t> as_number(std::string_view text)
{
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

std::string plain_time(std::string_view text)
{
    return std::string(text.starts_with("0-") ? text.substr(2) : text);
}

} // namespace gpuq::govern
