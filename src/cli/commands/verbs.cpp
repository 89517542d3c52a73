// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "core/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array<std::string_view, 1> k_reserved_verbs = {"data"};

} // namespace

Verbs verbs()
{
    return every_verb().first(k_verbs.size() - k_hidden_verbs);
}

Verbs every_verb()
{
    return k_verbs;
}

std::span<const std::string_view> reserved_verbs()
{
    return k_reserved_verbs;
}

Error no_such_verb(std::string_view name)
{
    const auto reserved = reserved_verbs();
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not in this version; gpuq help lists the verbs", name));
    }
    std::vector<std::string> known;
    for (const Verb* verb : verbs()) {
        known.emplace_back(verb->name);
    }
    return fail(Error::Kind::usage, fmt::format("no verb '{}'{}; gpuq help lists them", name,
                                                did_you_mean(name, known)));
}

} // namespace gpuq::cli
