// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// A run as a host of ssh.
struct SshHost {
    RunKey key;
    std::string title;               ///< for people
    std::vector<std::string> called; ///< what people call the run; what is no host name is left out
    std::string user;
    std::vector<std::string> command; ///< ProxyCommand
    std::string state_dir;            ///< where its keys are; empty: not on the machine of this ssh
};

/// The block for ssh_config: what ssh, scp, rsync and editors need to get into the run as the host
/// `gpuq-CALLED`. Where the run's keys are not, it is by one's own, and the host's is not checked:
/// the connection to the login host, which leads there, was. `usage` for a state folder whose name
/// ssh_config can not hold, or a word of the command.
Result<std::string> ssh_config(const SshHost& host);

} // namespace gpuq::cli
