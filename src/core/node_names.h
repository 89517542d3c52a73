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

/// Names of a run's sockets and directories on a node that other users share. They see each
/// other's job comments, and with them the key of a run: a name made of the key alone could be
/// taken before the run takes it. These names carry a tag that only a reader of the state
/// directory can compute.
class NodeNames {
public:
    /// The state directory has no secret yet: names made of the key, as gpuq 0.1.0 made them.
    NodeNames() = default;
    /// `secret`: the text of STATE/secret, 32 hexadecimal digits. Any other text: as above.
    explicit NodeNames(std::string_view secret);

    bool has_secret() const { return m_key.has_value(); }

    /// Where the supervisor of a link listens: names for abstract sockets (unix(7)), in the order
    /// in which they are tried. Each fits sun_path with the NUL before it. The last one is that of
    /// a supervisor that was started by gpuq 0.1.0.
    std::vector<std::string> sockets(unsigned uid, const RunKey& key, LinkNumber link) const;

    /// Paths of a link's directory for `purpose` (letters and digits) in /tmp, in the order in
    /// which they are tried. sweep_private_dirs() knows them.
    std::vector<std::string> directories(std::string_view purpose, unsigned uid, const RunKey& key,
                                         LinkNumber link) const;

    /// A name for a lock that one process of this user holds: `name`, and a tag.
    std::string lock(const std::string& name) const;

private:
    std::string tag(std::string_view text) const;
    std::optional<SipKey> m_key;
};

} // namespace gpuq
