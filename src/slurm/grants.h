// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/accounting.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::slurm {

/// An association as reported by slurmctld: an account, or a user in an account.
struct Association {
    std::string account;
    std::string user;   ///< empty: the account itself
    std::string parent; ///< of an account: its parent account; empty for the root
    std::optional<std::uint64_t> granted_minutes; ///< of GPU time; nullopt: no limit
    std::optional<std::uint64_t> used_seconds;    ///< nullopt if it is not counted
    bool operator==(const Association&) const = default;
};

/// For each account of `user`: the limits of the user in it, of the account, and of all its
/// parents.
std::vector<AccountGrants> grants_of(const std::string& user,
                                     const std::vector<Association>& associations);

} // namespace gpuq::slurm
