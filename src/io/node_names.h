// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/siphash.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Names of a run's sockets and directories on a node shared with other users. Other users can read
/// job comments and thus a run's key, so they could take a name derived from the key alone before
/// the run does. These names therefore contain a tag that only a reader of the state directory can
/// compute.
class NodeNames {
public:
    /// For a state directory without a secret: names derived from the key alone, as in gpuq 0.1.0.
    NodeNames() = default;
    /// `secret`: contents of STATE/secret, 32 hexadecimal digits. With any other text, same as
    /// above.
    explicit NodeNames(std::string_view secret);

    bool has_secret() const { return m_key.has_value(); }

    /// Abstract socket names (unix(7)) for the supervisor of a link, in the order in which they are
    /// tried. Each fits into sun_path including the leading NUL. The last one is the name used by
    /// gpuq 0.1.0.
    std::vector<std::string> sockets(unsigned uid, const RunKey& key, LinkNumber link) const;

    /// Directories in /tmp for `purpose` (letters and digits) of a link, in the order in which they
    /// are tried. sweep_private_dirs() recognizes them.
    std::vector<std::string> directories(std::string_view purpose, unsigned uid, const RunKey& key,
                                         LinkNumber link) const;

    /// The proof that one end of a network connection to a link's supervisor knows the
    /// secret, for a nonce of each end. Empty without a secret: nothing is proved then.
    enum class End { client, supervisor };
    std::string proof(End end, const RunKey& key, LinkNumber link, std::string_view client_nonce,
                      std::string_view supervisor_nonce) const;

    /// Name of a lock that at most one process of this user holds: `name` plus a tag.
    std::string lock(const std::string& name) const;

private:
    std::string tag(std::string_view text) const;
    std::optional<SipKey> m_key;
};

} // namespace gpuq
