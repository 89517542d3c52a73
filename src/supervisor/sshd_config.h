// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// What an sshd that serves one connection of one user has to know.
struct SshdSettings {
    std::string folder; ///< runs/KEY/connect, absolute
    std::string user;
    bool own_keys = false;                ///< ~/.ssh/authorized_keys counts too
    std::vector<std::string> environment; ///< NAME=VALUE for its sessions
};

/// The text of an sshd_config (OpenSSH 7.8 or newer): keys alone, no PAM, no root's privileges
/// needed, sftp inside. `usage` for a folder whose name can't be written there.
Result<std::string> sshd_config(const SshdSettings& settings);

/// The variables that make a session part of its job: Slurm's, those of GPUs, of credentials,
/// gpuq's and the ones in `chosen`. The rest is for the login shell to set, as everywhere with ssh.
std::vector<std::string>
session_environment(const std::vector<std::string>& environment,
                    const std::vector<std::pair<std::string, std::string>>& chosen);

} // namespace gpuq::supervisor
