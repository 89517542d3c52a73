// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "remote/ssh_facts.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// `NAME[:DIR]`, the argument of --host.
struct Place {
    std::string host; ///< as passed to ssh: a name, an alias in ~/.ssh/config, user@name
    std::string directory;
    bool operator==(const Place&) const = default;
};
/// `usage` for a host that ssh could take for an option or command.
Result<Place> place_from(std::string_view text);

/// Checks gpuq's name on the login host: a name or path without characters special to a shell.
/// `usage`.
Result<void> check_program(std::string_view program);

enum class Attempt {
    first, ///< ssh may ask the user on the terminal, for a password or about the host key
    asked, ///< at the user's request; gpuq shows ssh's questions
    again, ///< without questions: an unexpected password prompt teaches bad habits
};
/// Parameters of ssh's command line. `ssh`: the configured command with its arguments.
struct SshCommand {
    std::vector<std::string> ssh{"ssh"};
    std::string host;
    std::string program = "gpuq";
    Attempt attempt = Attempt::first;
    bool interactive = false; ///< there is a terminal to ask on
    bool alone =
        false; ///< bypass the user's shared connection (ControlPath), which may be unresponsive
    SshFacts facts;
    std::string early; ///< first bytes for `serve`, passed on its command line (escape_argument)
};
/// The command line that starts `serve`. It overrides options of the user's configuration that
/// would break gpuq: ssh uses the first value it finds, and the command line precedes files.
std::vector<std::string> ssh_arguments(const SshCommand& command);
/// The command line that prints the user's configuration (SshFacts). `with_ours`: including the
/// options of ssh_arguments.
std::vector<std::string> ssh_question(const SshCommand& command, bool with_ours);
/// The command line that checks for a live master process of the shared connection. Ends at once.
std::vector<std::string> ssh_check(const SshCommand& command);
/// The command line that opens a forwarding through the shared connection to a port without a
/// listener. It ends as soon as the host has responded; no shell is started.
std::vector<std::string> ssh_knock(const SshCommand& command);

/// Why an ssh has ended before gpuq's marker, or before the end of the verb.
struct Verdict {
    enum class What {
        broken,     ///< retry
        needs_user, ///< the host requires an interactive login; retrying would do harm
        other_way,  ///< the transport will connect in another way: retry at once
        stop,       ///< retrying is useless or would do harm
    } what = What::broken;
    Error error;
};
/// Errors of a login, in the same words for every transport. `host` is the user's name for it;
/// `reason` and `where` may include output of the peer, cleaned by peer_text.
Error host_key_changed(std::string_view host, std::string_view where);
Error login_refused(std::string_view host, std::string_view reason, bool could_ask);
Error login_wanted(std::string_view host, std::string_view reason);
/// For a host that accepts a connection and closes it again, before any login.
Error closed_before_login(std::string_view host, std::string_view reason);
/// For a ProxyCommand or ssh's own jump that ends before it has reached the host. `reason`: its
/// last message, possibly empty.
Error proxy_ended(std::string_view host, std::string_view reason);

/// How an ssh process has ended.
struct SshEnd {
    int status = 0;
    std::string_view errors;  ///< ssh's stderr in English, which may include output of the peer
    std::string_view printed; ///< stdout, if the peer did not start gpuq
};
/// The text of the error may include output of the peer, cleaned by peer_text.
Verdict classify_ssh(const SshEnd& end, const SshCommand& command);

/// The last informative line, without control characters.
std::string last_message(std::string_view errors);

} // namespace gpuq::remote
