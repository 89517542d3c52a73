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
/// which program is missing or failed, its own message, and what helps. `stopped` by a held signal.
/// An error leaves neither of them running.
Result<void> start_accounting(Start& start);

/// Ends both.
void end_accounting(Start& start);

/// Runs one sacctmgr command. Success also when there was nothing to change.
Result<void> account(const Start& start, std::vector<std::string> words);

/// Makes the cluster's record and its accounts known to slurmdbd.
Result<void> add_accounts(const Start& start);

/// Gives every user of this machine (root's cluster) or the caller an account. Slurm 22.05 books
/// the jobs of users without one on root.
Result<void> add_people(const Start& start);

/// The line of a daemon's log that names the cause of its end: the first error, else the last line.
/// Without times and program names; control characters replaced. Empty for an empty log. Pure.
std::string cause_in(std::string_view log);

/// What to do about `cause`, if that is known. Pure.
std::string remedy_for(std::string_view cause);

} // namespace gpuq::embedded
