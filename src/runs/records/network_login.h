// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "io/node_names.h"
#include "wire/frame.h"

#include <optional>
#include <string>

namespace gpuq {

/// One end of a network connection to a link's supervisor, before either end trusts the other. Each
/// proves that it can read the secret of the run's state directory, without showing it: a tag of
/// both nonces, the link and its own side (SipHash). A proof is good for one connection only, so
/// nothing that was overheard can be used again. The connection itself is neither encrypted nor
/// protected against whoever can change packets between the hosts, like srun's own streams.
class NetworkLogin {
public:
    /// `nonce`: this end's; from random_nonce(), except in tests.
    NetworkLogin(NodeNames names, RunKey key, LinkNumber link, std::string nonce);

    /// For the client: begins.
    wire::Challenge challenge() const { return {m_nonce}; }
    /// For the supervisor: the reply to the first challenge; nullopt: drop the connection.
    std::optional<wire::Proof> prove(const wire::Challenge& challenge);
    /// For the client: the reply; nullopt: this is not the run's supervisor.
    std::optional<wire::Answer> answer(const wire::Proof& proof) const;
    /// For the supervisor: whether the client is the run's owner.
    bool accepts(const wire::Answer& answer) const;

private:
    NodeNames m_names;
    RunKey m_key;
    LinkNumber m_link;
    std::string m_nonce, m_peer;
};

/// 32 hexadecimal digits from the kernel; empty if it has none, and then no login succeeds.
std::string random_nonce();

} // namespace gpuq
