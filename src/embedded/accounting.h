// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/daemons.h"

#include <string>
#include <string_view>
#include <vector>

/// MariaDB and slurmdbd of a cluster, and the accounts in them.
namespace gpuq::embedded {

/// Starts MariaDB and slurmdbd and waits until slurmdbd accepts connections. The error is one line:
/// the program that is missing or failed, its message, and a remedy. `stopped` by a held signal. On
/// failure, neither of them is left running.
Result<void> start_accounting(Start& start);

/// Ends both daemons.
void end_accounting(Start& start);

/// Runs a sacctmgr command. Succeeds if there was nothing to change.
Result<void> account(const Start& start, std::vector<std::string> arguments);

/// Registers the cluster and its accounts in slurmdbd.
Result<void> add_accounts(const Start& start);

/// Gives an account to the caller, or for root's cluster to all users of this machine. Slurm 22.05
/// charges jobs of users without an account to root.
Result<void> add_users(const Start& start);

/// The line of a daemon's log that explains why it ended: the first error, else the last line,
/// without time and program name; control characters are replaced. Empty for an empty log. Pure.
std::string cause_in(std::string_view log);

/// The remedy for `cause`, if known. Pure.
std::string remedy_for(std::string_view cause);

} // namespace gpuq::embedded
