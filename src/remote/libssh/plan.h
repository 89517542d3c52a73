// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// Everything that a connection by libssh needs of the user's ssh configuration. libssh must not
/// read it itself: for `Host alias` with HostName it would log in as another user than OpenSSH
/// (0.10.6).
struct SshPlan {
    std::string host, user;
    std::uint16_t port = 22;
    enum class Family { any, ipv4, ipv6 } family = Family::any;
    std::chrono::seconds connect_timeout{10};
    std::string proxy_command; ///< for a shell; empty: none
    std::string proxy_jump;    ///< for hops_in(); empty: none
    std::string control_path;  ///< socket of a shared connection that may exist; empty: none

    std::vector<std::string> known_as;    ///< the host's names in known_hosts, the best first
    std::vector<std::string> known_hosts; ///< files
    struct KeyRules {
        bool takes_changed = false; ///< StrictHostKeyChecking no
        int least_rsa_bits = 0;     ///< RequiredRSASize, of user keys too; 0: the default
        bool operator==(const KeyRules&) const = default;
    } key_rules;

    /// Comma-separated algorithms in order of preference; libssh ignores those that it lacks.
    std::string key_exchange, host_keys, ciphers, macs, user_keys;
    bool compression = false;

    std::vector<std::string> methods; ///< of authentication, in order of preference
    std::vector<std::string> identities, certificates; ///< files
    bool identities_only = false;                      ///< no other keys of the agent
    std::string agent;                                 ///< its socket; empty: none
    bool delegates = false;                            ///< GSSAPIDelegateCredentials
    bool batch = false;                                ///< no questions
    int tries = 3;                                     ///< per password or passphrase
    bool operator==(const SshPlan&) const = default;
};

/// A jump host as the user names it: to be configured by `ssh -G` itself.
struct Hop {
    std::string user, host, port; ///< user and port may be empty
    bool operator==(const Hop&) const = default;
};
/// The jump hosts of ProxyJump, the nearest one first. `missing` for what only OpenSSH can read.
Result<std::vector<Hop>> hops_in(std::string_view proxy_jump);

/// What the configuration does not contain.
struct PlanSources {
    std::string home;        ///< for `~/` in paths
    std::string agent;       ///< $SSH_AUTH_SOCK
    std::string destination; ///< as given to ssh, for %n
};

/// Evaluates the output of `ssh -G`. `missing` if the user's configuration requires something that
/// only OpenSSH can do; the text is the reason, to follow "OpenSSH, since".
Result<SshPlan> plan_from(std::string_view configuration, const PlanSources& sources);

} // namespace gpuq::remote
