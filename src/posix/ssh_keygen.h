// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/ssh_key.h"

namespace gpuq {

/// A new key pair without a passphrase, by OpenSSH's ssh-keygen: Ed25519, or ECDSA where that is
/// not allowed (FIPS). `not_found` when there is no ssh-keygen. Nothing stays on disk.
Result<SshKeyPair> make_ssh_key();

} // namespace gpuq
