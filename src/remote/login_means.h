// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// What may let ssh in without asking the user: files of keys, certificates and tickets, the socket
/// of a connection that is shared, a key agent.
struct LoginMeans {
    std::vector<std::string> files;
    std::string agent; ///< its socket; empty: none
    bool operator==(const LoginMeans&) const = default;
};
/// `configuration`: what `ssh -G HOST` prints; also from $SSH_AUTH_SOCK and $KRB5CCNAME.
LoginMeans login_means_from(std::string_view configuration);

/// A number for each of them as it is now; 0: it is not there. Asks the agent which keys it has,
/// which takes at most `k_agent_ms`.
using LoginState = std::vector<std::uint64_t>;
LoginState state_of(const LoginMeans& means);
inline constexpr int k_agent_ms = 300;
/// True when one has come or changed: that one is gone lets nobody in.
bool may_let_in(const LoginState& before, const LoginState& now);

} // namespace gpuq::remote
