// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/ssh_key.h"

namespace gpuq {

/// Generates a key pair without a passphrase, using OpenSSH's ssh-keygen: Ed25519, or ECDSA where
/// Ed25519 is not allowed (FIPS). `not_found` when ssh-keygen is not installed. Leaves nothing on
/// disk.
Result<SshKeyPair> make_ssh_key();

} // namespace gpuq
