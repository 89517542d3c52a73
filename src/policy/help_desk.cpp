// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/help_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace gpuq::policy {

namespace {

struct RightRow {
    bool HelpDesk::*given;
    std::string_view action;
};
constexpr std::array<RightRow, 3> k_rights{
    RightRow{&HelpDesk::stop, "stop"}, {&HelpDesk::extend, "extend"}, {&HelpDesk::see, "see"}};

const RightRow& row_of(DeskRight right)
{
    return k_rights.at(static_cast<std::size_t>(right));
}

} // namespace

bool has_right(const Policy& policy, const std::string& user, DeskRight right)
{
    const auto& desk = policy.help_desk;
    return desk && (*desk).*row_of(right).given &&
           std::find(desk->users.begin(), desk->users.end(), user) != desk->users.end();
}

std::optional<std::string> refusal_of(const Policy& policy, const std::string& user,
                                      DeskRight right)
{
    if (has_right(policy, user, right)) {
        return std::nullopt;
    }
    const std::string_view action = row_of(right).action;
    if (!policy.help_desk) {
        return fmt::format("the policy has no help desk that may {} the jobs of others", action);
    }
    return fmt::format("the help desk does not let {} {} the jobs of others ({}:{})", user, action,
                       policy.file, policy.help_desk->line);
}

} // namespace gpuq::policy
