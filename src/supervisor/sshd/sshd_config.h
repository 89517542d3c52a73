// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// Parameters of an sshd that serves one connection of one user.
struct SshdSettings {
    std::string directory; ///< runs/KEY/connect, absolute
    std::string user;
    bool own_keys = false;                ///< also accept keys in ~/.ssh/authorized_keys
    std::vector<std::string> environment; ///< NAME=VALUE for its sessions
};

/// The text of an sshd_config (OpenSSH 7.8 or newer): public keys only, no PAM, no root privileges
/// needed, built-in sftp. `usage` if the directory's name cannot be written in it.
Result<std::string> sshd_config(const SshdSettings& settings);

/// The variables that make a session part of its job: those of Slurm, GPUs, credentials and gpuq,
/// and those in `chosen`. All others are left to the login shell, as usual with ssh.
std::vector<std::string>
session_environment(const std::vector<std::string>& environment,
                    const std::vector<std::pair<std::string, std::string>>& chosen);

} // namespace gpuq::supervisor
