// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <optional>
#include <string>

/// The rights of the help desk (`help_desk:`), which gpuq itself enforces. Pure.
namespace gpuq::policy {

enum class DeskRight { stop, extend, see };

/// Whether a user has a right over the jobs of others.
bool has_right(const Policy& policy, const std::string& user, DeskRight right);

/// The reason, with the position of the rule, why a user may not act on another user's job; nullopt
/// if the user may.
std::optional<std::string> refusal_of(const Policy& policy, const std::string& user,
                                      DeskRight right);

} // namespace gpuq::policy
