// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "core/ssh_key.h"
#include "ports/store.h"

#include <functional>
#include <string>
#include <string_view>

/// The keys of `gpuq connect`: a pair for the user and one for the run's sshd. Each run has its
/// own, in runs/KEY/connect until it ends.
namespace gpuq {

struct ConnectKeys {
    SshKeyPair user;
    SshKeyPair host;
    bool operator==(const ConnectKeys&) const = default;
};

std::string to_json(const ConnectKeys& keys);
Result<ConnectKeys> connect_keys_from_json(std::string_view text);

/// The name under which ssh knows the run's sshd (HostKeyAlias).
std::string host_key_alias(const RunKey& key);

/// Makes sure that the run has its keys and the files that ssh and sshd read. Concurrent callers
/// get the same keys. `make` creates a new pair. `missing` if the run has ended: no files are left
/// then.
Result<void> prepare_connect(Store& store, const RunKey& key,
                             const std::function<Result<SshKeyPair>()>& make);

/// Removes the keys. New logins are no longer possible.
void forget_connect_keys(Store& store, const RunKey& key);

/// Called when the run is known to have ended: removes its entry in index/active, its keys and its
/// credentials.
void forget_active(Store& store, const RunKey& key);

} // namespace gpuq
