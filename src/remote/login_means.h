// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
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
/// which takes at most `k_agent_patience`.
using LoginState = std::vector<std::uint64_t>;
LoginState state_of(const LoginMeans& means);
inline constexpr std::chrono::milliseconds k_agent_patience{300};
/// True when an item has appeared or changed. The disappearance of one cannot allow a login.
bool may_let_in(const LoginState& before, const LoginState& now);

/// True if the agent lists at least one key within `patience`.
bool has_keys(const std::string& socket, std::chrono::milliseconds patience);

} // namespace gpuq::remote
