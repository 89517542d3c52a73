// SPDX-License-Identifier: GPL-2.0-or-later
#include "log/level.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace gpuq::log {
namespace {

constexpr std::array<std::string_view, 6> k_level_names = {"trace",   "debug", "info",
                                                           "warning", "error", "off"};
constexpr std::array<std::string_view, k_parts> k_part_names = {
    "command", "client", "remote", "slurm", "supervisor", "chain", "tickets", "samples", "cluster"};

template <std::size_t size>
std::optional<std::size_t> index_in(const std::array<std::string_view, size>& names,
                                    std::string_view name)
{
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? std::nullopt : std::optional<std::size_t>(found - names.begin());
}

Result<Level> parse_level(std::string_view name)
{
    const auto index = index_in(k_level_names, name);
    return index ? Result<Level>(static_cast<Level>(*index))
                 : fail(Error::Kind::usage, fmt::format("GPUQ_LOG: unknown level '{}'; levels: {}",
                                                        name, fmt::join(k_level_names, ", ")));
}

} // namespace

std::string_view name_of(Level level)
{
    return k_level_names[static_cast<std::size_t>(level)];
}

std::string_view name_of(Part part)
{
    return k_part_names[static_cast<std::size_t>(part)];
}

Levels Levels::all(Level level)
{
    Levels levels{};
    levels.of_part.fill(level);
    return levels;
}

Result<Levels> parse_levels(std::string_view text, const Levels& otherwise)
{
    std::optional<Level> general;
    std::array<std::optional<Level>, k_parts> single;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const auto equals = item.find('=');
        TRY_ASSIGN(const Level level,
                   parse_level(equals == item.npos ? item : item.substr(equals + 1)));
        if (equals == item.npos) {
            general = level;
            continue;
        }
        const auto part = index_in(k_part_names, item.substr(0, equals));
        if (!part) {
            return fail(Error::Kind::usage,
                        fmt::format("GPUQ_LOG: unknown part '{}'; parts: {}",
                                    item.substr(0, equals), fmt::join(k_part_names, ", ")));
        }
        single[*part] = level;
    }
    Levels levels = general ? Levels::all(*general) : otherwise;
    for (std::size_t part = 0; part < k_parts; ++part) {
        levels.of_part[part] = single[part].value_or(levels.of_part[part]);
    }
    return levels;
}

} // namespace gpuq::log
