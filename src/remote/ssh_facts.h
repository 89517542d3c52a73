// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// The user's ssh configuration for a host, as printed by `ssh -G`: ssh itself resolves aliases,
/// Include and Match. The defaults apply when ssh gives no answer.
struct SshFacts {
    bool has_session_options = false; ///< ssh knows SessionType, StdinNull, ForkAfterAuthentication
    /// Which of them leaves ssh without streams or command: `stdinnull yes`.
    std::string without_streams;
    bool quiet = false;           ///< LogLevel hides errors
    bool batch = false;           ///< BatchMode: ssh asks no questions
    bool strict = false;          ///< StrictHostKeyChecking: ssh does not ask about an unknown key
    bool keeps_no_keys = false;   ///< any host key is accepted, and none is stored
    bool asks_about_keys = false; ///< UpdateHostKeys: ssh may ask in the middle of a session
    std::string control_path;     ///< socket of a shared connection; empty: none
    std::string proxy_jump;       ///< comma-separated jump hosts in order; empty: none
    bool operator==(const SshFacts&) const = default;
};

/// One `keyword value` line of `ssh -G`; the value may be empty. Both are parts of its output.
struct SshSetting {
    std::string_view keyword;
    std::string_view value;
};

/// The lines of `ssh -G`, in order: a keyword may occur several times.
std::vector<SshSetting> ssh_settings_in(std::string_view text);

/// Evaluates the output of `ssh -G`. Unknown keywords are skipped.
SshFacts ssh_facts_from(std::string_view text);

} // namespace gpuq::remote
