// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq::remote {

/// What the user's configuration says about a host, as `ssh -G` prints it: aliases, Include and
/// Match are resolved by ssh itself. The defaults hold for an ssh that has not answered.
struct SshFacts {
    bool has_session_options = false; ///< knows SessionType, StdinNull, ForkAfterAuthentication
    /// With one of them set so that ssh has no streams or runs no command: `stdinnull yes`.
    std::string without_streams;
    bool quiet = false;           ///< LogLevel hides errors
    bool batch = false;           ///< BatchMode: ssh asks nothing
    bool strict = false;          ///< StrictHostKeyChecking: ssh does not ask about an unknown key
    bool keeps_no_keys = false;   ///< any host key is taken, and none is stored
    bool asks_about_keys = false; ///< UpdateHostKeys: a question in the middle of a session
    std::string control_path;     ///< of a connection that may be shared; empty: none is
    std::string proxy_jump;       ///< the last host on the way and those before it; empty: none
    bool operator==(const SshFacts&) const = default;
};

/// Out of the lines `keyword value` of `ssh -G`. Other lines are skipped.
SshFacts ssh_facts_from(std::string_view text);

} // namespace gpuq::remote
