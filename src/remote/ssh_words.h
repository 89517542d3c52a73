// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// `NAME[:DIR]`, as people write it after --host.
struct Place {
    std::string host; ///< for ssh: a name, an alias of ~/.ssh/config, user@name
    std::string folder;
    bool operator==(const Place&) const = default;
};
/// `usage` for what ssh could take for something else than a host.
Result<Place> place_from(std::string_view text);

/// gpuq's name on the login host: a word or path that no shell reads as anything else. `usage`.
Result<void> check_program(std::string_view program);

enum class Attempt {
    first, ///< a person may be asked for a password, or whether a key is the right one
    again, ///< nobody is: a window that asks for a password out of nothing teaches bad habits
};
/// The command line of ssh. `ssh`: its first words, as configured.
struct SshCommand {
    std::vector<std::string> ssh{"ssh"};
    std::string host;
    std::string program = "gpuq";
    Attempt attempt = Attempt::first;
    bool person = false; ///< there is a terminal to ask on
    bool alone =
        false; ///< past a shared connection of the user's own (ControlPath), which may hang
};
std::vector<std::string> ssh_words(const SshCommand& command);

/// What became of an ssh that has ended without gpuq's marker, or before the verb's end.
struct Verdict {
    enum class What {
        broken, ///< try again
        stop,   ///< trying again does not help, or would do harm
    } what = What::broken;
    Error error;
};
/// Out of what it said (in English) and its exit status. `host` for the sentence. The error's text
/// holds words of the far side, sanitised.
Verdict judge_ssh(int status, std::string_view errors, const SshCommand& command);

/// The line that says most, without control characters.
std::string last_words(std::string_view errors);

} // namespace gpuq::remote
