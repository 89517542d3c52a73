// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq {

/// An ssh key pair in OpenSSH's file format.
struct SshKeyPair {
    std::string secret;      ///< contents of the private key file
    std::string public_line; ///< `ssh-ed25519 AAAA...`, without comment or newline

    bool operator==(const SshKeyPair&) const = default;
};

} // namespace gpuq
