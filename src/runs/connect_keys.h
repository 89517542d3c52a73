// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "core/ssh_key.h"
#include "ports/store.h"

#include <functional>
#include <string>
#include <string_view>

/// The keys of `gpuq connect`: a pair for the user and one for the run's sshd, of each run its own,
/// in runs/KEY/connect for as long as the run lives.
namespace gpuq {

struct ConnectKeys {
    SshKeyPair user;
    SshKeyPair host;
    bool operator==(const ConnectKeys&) const = default;
};

std::string to_json(const ConnectKeys& keys);
Result<ConnectKeys> connect_keys_from_json(std::string_view text);

/// What ssh knows the run's sshd by (HostKeyAlias).
std::string host_key_alias(const RunKey& key);

/// Sees to it that the run has its keys, and the files that ssh and sshd read. Of several that ask
/// at once, all get the same. `make` makes a new pair. `missing` when the run has ended: then
/// nothing stays.
Result<void> prepare_connect(Store& store, const RunKey& key,
                             const std::function<Result<SshKeyPair>()>& make);

/// Removes them. Nobody gets in any more.
void forget_connect_keys(Store& store, const RunKey& key);

/// The run is known to have ended: it is no longer active, and its keys go.
void forget_active(Store& store, const RunKey& key);

} // namespace gpuq
