// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// A run as a host for ssh.
struct SshHost {
    RunKey key;
    std::string title;               ///< for the comment
    std::vector<std::string> called; ///< names of the run; those invalid in host names are left out
    std::string user;
    std::vector<std::string> command; ///< ProxyCommand
    std::string state_dir;            ///< where its keys are; empty: not on the machine of this ssh
};

/// The block for ssh_config with which ssh, scp, rsync and editors connect to the run as the host
/// `gpuq-CALLED`. If the run's keys are not on that machine, the user's own are used, and the host
/// key is not checked: the connection to the login host, through which it runs, has been verified.
/// `usage` if ssh_config can't represent the name of the state directory or an argument of the
/// command.
Result<std::string> ssh_config(const SshHost& host);

/// The names of the run in this block.
std::vector<std::string> host_names(const SshHost& host);

} // namespace gpuq::cli
