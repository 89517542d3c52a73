// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/proposals.h"

#include "core/strings.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gpuq::sweeps {
namespace {

using nlohmann::ordered_json;

template <typename Number>
ordered_json or_null(const std::optional<Number>& value)
{
    return value ? ordered_json(*value) : ordered_json(); // NaN is written as null
}

ordered_json result_of(const Sweep& sweep, const Try& entry, std::size_t number)
{
    constexpr std::array<const char*, 3> k_states = {"waiting", "running", "ended"};
    ordered_json values = ordered_json::object();
    for (std::size_t i = 0; i < std::min(sweep.parameters.size(), entry.values.size()); ++i) {
        values[sweep.parameters[i]] = entry.values[i];
    }
    const bool has_ended = entry.state == Try::State::ended;
    return {{"try", number},
            {"state", k_states.at(static_cast<std::size_t>(entry.state))},
            {"values", std::move(values)},
            {"end", has_ended ? ordered_json(word(entry.end->end)) : ordered_json()},
            {"status", has_ended ? ordered_json(entry.end->status) : ordered_json()},
            {"best", or_null(entry.reached.best)},
            {"best_step", or_null(entry.reached.best_step)},
            {"last", or_null(entry.reached.last)}};
}

} // namespace

std::string results_text(const Sweep& sweep, const std::vector<Try>& tries)
{
    std::string text;
    for (std::size_t i = 0; i < tries.size(); ++i) {
        text += result_of(sweep, tries[i], i + 1)
                    .dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
                "\n";
    }
    return text;
}

Result<std::vector<Values>> ordered(const TriesTable& table, const std::vector<std::string>& names)
{
    std::vector<std::size_t> places;
    for (const std::string& name : names) {
        const auto found = std::find(table.names.begin(), table.names.end(), name);
        if (found == table.names.end() || table.names.size() != names.size()) {
            return fail(Error::Kind::usage,
                        fmt::format("the tries have the parameters {}", fmt::join(names, ", ")));
        }
        places.push_back(static_cast<std::size_t>(found - table.names.begin()));
    }
    std::vector<Values> tries;
    for (const Values& given : table.tries) {
        Values values;
        for (const std::size_t place : places) {
            values.push_back(given[place]);
        }
        tries.push_back(std::move(values));
    }
    return tries;
}

Result<std::vector<Values>> proposals_in(std::string_view text,
                                         const std::vector<std::string>& names, std::size_t most)
{
    if (trimmed(text).empty()) {
        return std::vector<Values>();
    }
    if (!trimmed(text).starts_with('{')) {
        return fail(Error::Kind::usage, "output:1: not a JSON object");
    }
    TRY_ASSIGN(const TriesTable table, parse_tries(text, "output"));
    TRY_ASSIGN(std::vector<Values> tries, ordered(table, names));
    tries.resize(std::min(tries.size(), most));
    return tries;
}

} // namespace gpuq::sweeps
