// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::slurm {

/// What slurmctld says of one association: an account, or a user in one.
struct Association {
    std::string account;
    std::string user;   ///< empty: the account itself
    std::string parent; ///< of an account: the one above it; empty at the top
    std::optional<std::chrono::minutes> granted;
    std::optional<std::chrono::seconds> used; ///< nothing where it is not counted
    bool operator==(const Association&) const = default;
};

/// One line of the answer of a child, and back.
std::string to_line(const Association& association);
Association association_of_line(const std::string& line);

/// Of each account of `user`: the limits of the user in it, of itself and of all above it.
std::vector<AccountGrants> grants_of(const std::string& user,
                                     const std::vector<Association>& associations);

} // namespace gpuq::slurm
