// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// The means by which ssh can log in without asking the user: files of keys, certificates and
/// tickets, the socket of a shared connection, a key agent.
struct LoginMeans {
    std::vector<std::string> files;
    std::string agent; ///< its socket; empty: none
    bool operator==(const LoginMeans&) const = default;
};
/// `configuration`: output of `ssh -G HOST`. Also uses $SSH_AUTH_SOCK and $KRB5CCNAME.
LoginMeans login_means_from(std::string_view configuration);

/// A number for the current state of each item; 0: it does not exist. Asks the agent for its keys,
/// which takes at most `k_agent_ms`.
using LoginState = std::vector<std::uint64_t>;
LoginState state_of(const LoginMeans& means);
inline constexpr int k_agent_ms = 300;
/// True when an item has appeared or changed. The disappearance of one cannot allow a login.
bool may_let_in(const LoginState& before, const LoginState& now);

} // namespace gpuq::remote
