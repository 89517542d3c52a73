// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "remote/ssh_facts.h"

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
    asked, ///< the user is, because they have said so; by gpuq, not by ssh on the terminal
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
    SshFacts facts;
    std::string early; ///< what `serve` is to know before anything can be sent (word_of)
};
/// Options that the user's configuration could set so that gpuq would not work are set here: the
/// first value counts, and the command line comes before files.
std::vector<std::string> ssh_words(const SshCommand& command);
/// Prints the user's configuration (SshFacts). `with_ours`: as ssh_words has it.
std::vector<std::string> ssh_question(const SshCommand& command, bool with_ours);
/// Ends at once where there is no shared connection, or its process lives.
std::vector<std::string> ssh_check(const SshCommand& command);
/// Opens a connection through the shared one that no program answers. Ends as soon as the host has
/// said so: no shell is started.
std::vector<std::string> ssh_knock(const SshCommand& command);

/// What became of an ssh that has ended without gpuq's marker, or before the verb's end.
struct Verdict {
    enum class What {
        broken,     ///< try again
        needs_user, ///< it lets in only who answers its questions, and trying again does harm
        stop,       ///< trying again does not help, or would do harm
    } what = What::broken;
    Error error;
};
/// How an ssh has ended.
struct SshEnd {
    int status = 0;
    std::string_view errors;  ///< its stderr, in English; what the other side wrote there too
    std::string_view printed; ///< by the other side, which did not start gpuq
};
/// The error's text holds words of the other side, as peer_text has them.
Verdict judge_ssh(const SshEnd& end, const SshCommand& command);

/// The line that says most, without control characters.
std::string last_words(std::string_view errors);

} // namespace gpuq::remote
