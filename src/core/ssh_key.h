// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq {

/// A key pair of ssh as OpenSSH's files have it.
struct SshKeyPair {
    std::string secret;      ///< the whole private key file
    std::string public_line; ///< `ssh-ed25519 AAAA...`, without a comment or a newline

    bool operator==(const SshKeyPair&) const = default;
};

} // namespace gpuq
