// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "remote/libssh/library.h"
#include "remote/libssh/plan.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::remote {

/// The entries of known_hosts for one host.
struct KnownHost {
    struct Key {
        SshKey key;
        std::string file;
        std::size_t line = 0;
    };
    std::vector<Key> keys;
    /// They are those of the host's name without the port, where another server may listen: a
    /// different key means nothing.
    bool is_without_port = false;
    /// A line with @cert-authority, @revoked or a negated name (`!NAME`) may be about the host,
    /// which libssh cannot evaluate.
    bool is_special = false;
};
/// Reads plan.known_hosts; libssh itself would read only one file of each kind and does not report
/// lines. Files that cannot be read are skipped, as by ssh. If the first of plan.known_as has no
/// key, the next one counts, which is without the port.
KnownHost known_host(const Libssh& ssh, const SshPlan& plan);

/// plan.host_keys with the algorithms of the known keys first, so that the host shows a key that
/// can be compared.
std::string preferred_host_keys(const Libssh& ssh, const SshPlan& plan, const KnownHost& known);

struct HostKeyCheck {
    enum class Is { known, changed, unknown } is = Is::unknown;
    std::string where; ///< `FILE:LINE` of the other key of the same type, if `changed`
};
HostKeyCheck check_host_key(const Libssh& ssh, const KnownHost& known, const SshKey& key);

} // namespace gpuq::remote
