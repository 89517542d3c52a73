// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_arguments.h"

#include "core/quote.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::remote {
namespace {

constexpr int k_not_found = 127;
constexpr int k_not_executable = 126;
constexpr int k_ssh_itself = 255;
constexpr int k_killed = 128; ///< plus the signal number: ssh itself was killed
constexpr int k_largest_signal = 64;

bool is_one_of(char c, std::string_view others)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
}

bool has(std::string_view text, std::string_view part)
{
    return text.find(part) != std::string_view::npos;
}

constexpr std::string_view k_no_greeting = "kex_exchange_identification:";
/// In messages on a connection without an address, which is that of a ProxyCommand or a jump:
/// `Connection closed by ...`, `banner exchange: Connection to ...: Broken pipe`.
constexpr std::string_view k_without_address = "UNKNOWN port ";

/// Lines of ssh that do not describe the problem.
bool is_noise(std::string_view line)
{
    static constexpr std::array<std::string_view, 12> k_beginnings = {"@@@@",
                                                                      "Warning: Permanently added",
                                                                      "debug",
                                                                      "Connection to ",
                                                                      "Disconnected from ",
                                                                      "** ",
                                                                      "OpenSSH_",
                                                                      "Authenticated ",
                                                                      "Transferred:",
                                                                      "Bytes per second:",
                                                                      "Shared ",
                                                                      "stdio forwarding failed"};
    // ssh reads its configuration before anything else, and warns of options that it was built
    // without.
    const bool is_of_configuration = has(line, "line ") && has(line, "nsupported option \"");
    return line.empty() || is_of_configuration ||
           std::any_of(k_beginnings.begin(), k_beginnings.end(),
                       [&](auto beginning) { return line.starts_with(beginning); });
}

/// True if the host has rejected all offered or entered credentials.
bool is_refusal(std::string_view errors)
{
    return has(errors, "Permission denied (") || has(errors, "Too many authentication failures") ||
           has(errors, "Too many password") || has(errors, "No supported authentication methods");
}

/// Extracts the location from `Offending ED25519 key in /home/ada/.ssh/known_hosts:3`.
std::string offending(std::string_view errors)
{
    const std::size_t begin = errors.find("Offending ");
    if (begin == std::string_view::npos) {
        return {};
    }
    std::string_view line = errors.substr(begin, errors.find('\n', begin) - begin);
    const std::size_t in = line.find(" in ");
    return in == std::string_view::npos ? std::string()
                                        : sanitised(last_message(line.substr(in + 4)));
}

Verdict stop(Error::Kind kind, std::string text)
{
    return {Verdict::What::stop, fail(kind, std::move(text))};
}

Verdict classify_key(std::string_view errors, const SshCommand& command)
{
    const std::string host = sanitised(command.host);
    if (has(errors, "IDENTIFICATION HAS CHANGED") || has(errors, "host key has changed") ||
        has(errors, "host key for") || has(errors, "REVOKED HOST KEY")) {
        return {Verdict::What::stop, host_key_changed(command.host, offending(errors))};
    }
    const bool asked =
        command.interactive && command.attempt == Attempt::first && !command.facts.batch;
    if (asked && !command.facts.strict) {
        return stop(Error::Kind::denied,
                    fmt::format("the host key of {} was not accepted: nothing was sent", host));
    }
    return stop(
        Error::Kind::denied,
        fmt::format(
            "the host key of {} is not known on this machine, and {}: connect once by hand, ssh {}",
            host,
            asked ? "StrictHostKeyChecking forbids ssh to ask about it"
                  : "ssh asks about new keys only on a terminal, at the first connection",
            host));
}

/// The login succeeded, but a program other than gpuq was started: a ForceCommand, nologin, an
/// expired password.
Verdict classify_other_program(const SshEnd& end, const std::string& output,
                               const SshCommand& command)
{
    const std::string printed = output.empty() ? last_message(end.printed) : output;
    return {command.attempt == Attempt::first ? Verdict::What::stop : Verdict::What::broken,
            fail(Error::Kind::denied,
                 fmt::format(
                     "{} accepts the login but does not start gpuq: {}", sanitised(command.host),
                     printed.empty() ? fmt::format("exit status {}", end.status) : printed))};
}

/// ProxyCommand for the jump host that bypasses its shared connection.
std::string own_way_by(const SshCommand& command)
{
    std::string_view hosts = command.facts.proxy_jump;
    const std::size_t comma = hosts.rfind(',');
    std::vector<std::string> output = command.ssh;
    output.insert(output.end(), {"-o", "ControlPath=none"});
    if (comma != std::string_view::npos) {
        output.insert(output.end(), {"-J", std::string(hosts.substr(0, comma))});
        hosts.remove_prefix(comma + 1);
    }
    std::string last(hosts);
    if (const std::size_t colon = last.rfind(':');
        colon != std::string::npos && last.find(']', colon) == std::string::npos) {
        output.insert(output.end(), {"-p", last.substr(colon + 1)});
        last.resize(colon);
    }
    std::erase_if(last, [](char c) { return c == '[' || c == ']'; }); // around an IPv6 address
    std::string line;
    for (const std::string& word : output) {
        for (const char c : shell_quoted(word) + " ") {
            line += c == '%' ? "%%" : std::string(1, c);
        }
    }
    return line + "-W '[%h]:%p' -- " + shell_quoted(last);
}

} // namespace

Error host_key_changed(std::string_view host, std::string_view where)
{
    return fail(Error::Kind::denied,
                fmt::format("the host key of {} has changed{}: another machine may be answering. "
                            "gpuq stops; ask the site before you remove the old key",
                            sanitised(host), where.empty() ? "" : fmt::format(" (in {})", where)));
}

Error login_refused(std::string_view host, std::string_view reason, bool could_ask)
{
    return fail(Error::Kind::denied,
                fmt::format("{0} refused the login ({1}){2}: see whether ssh {0} works",
                            sanitised(host), reason,
                            could_ask ? "" : ", and ssh can't ask without a terminal"));
}

Error login_wanted(std::string_view host, std::string_view reason)
{
    return fail(Error::Kind::denied,
                fmt::format("{} wants a password, a second factor or a key's passphrase again ({})",
                            sanitised(host), reason));
}

Error closed_before_login(std::string_view host, std::string_view reason)
{
    return fail(Error::Kind::unreachable,
                fmt::format("{} closed the connection before the login ({}): it may accept no more "
                            "connections at the moment (MaxStartups of its sshd), or none from "
                            "here; try again",
                            sanitised(host), reason));
}

Error proxy_ended(std::string_view host, std::string_view reason)
{
    return fail(Error::Kind::unreachable,
                fmt::format("{}: not reached by ssh's ProxyCommand or ProxyJump ({})",
                            sanitised(host),
                            reason.empty() ? "it ended without a message" : reason));
}

Result<Place> place_from(std::string_view text)
{
    if (text.find("://") != std::string_view::npos) {
        return fail(Error::Kind::usage,
                    fmt::format("--host: '{}' is not a name for ssh, such as login1 or ada@login1; "
                                "a port belongs in ~/.ssh/config",
                                sanitised(text)));
    }
    const std::size_t colon = text.find(':');
    Place place{std::string(text.substr(0, colon)),
                colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1))};
    if (place.host.empty()) {
        return fail(Error::Kind::usage, "--host: missing host name: --host NAME, or NAME:FOLDER");
    }
    const bool has_empty_part = place.host.front() == '@' || place.host.back() == '@';
    // ssh would take a name that begins with - for an option.
    if (has_empty_part || place.host.front() == '-' ||
        !std::all_of(place.host.begin(), place.host.end(),
                     [](char c) { return is_one_of(c, "._-@+"); })) {
        return fail(Error::Kind::usage,
                    fmt::format("--host: invalid host name '{}'", sanitised(place.host)));
    }
    return place;
}

Result<void> check_program(std::string_view program)
{
    if (!program.empty() && program.front() != '-' &&
        std::all_of(program.begin(), program.end(),
                    [](char c) { return is_one_of(c, "/._-+~"); })) {
        return {};
    }
    return fail(Error::Kind::usage, fmt::format("GPUQ_REMOTE: '{}': use a path of letters, digits "
                                                "and /._-+~ only, since the remote shell reads it",
                                                sanitised(program)));
}

namespace {

std::vector<std::string> with_options(const SshCommand& command)
{
    static constexpr std::array k_always = {"ClearAllForwardings=yes",
                                            "ExitOnForwardFailure=no",
                                            "RemoteCommand=none",
                                            "PermitLocalCommand=no",
                                            "Tunnel=no",
                                            "ConnectTimeout=10"};
    static constexpr std::array k_session = {"SessionType=default", "StdinNull=no",
                                             "ForkAfterAuthentication=no"};
    std::vector<std::string> output = command.ssh;
    const auto option = [&](std::string_view text) {
        output.insert(output.end(), {"-o", std::string(text)});
    };
    output.insert(output.end(), {"-T", "-x", "-e", "none"});
    std::for_each(k_always.begin(), k_always.end(), option);
    if (command.facts.has_session_options) {
        std::for_each(k_session.begin(), k_session.end(), option);
    }
    if (command.facts.quiet) { // also overrides -q, which -o cannot
        output.emplace_back("-v");
    }
    if (command.facts.asks_about_keys) {
        option("UpdateHostKeys=no");
    }
    if (command.attempt == Attempt::asked) {
        option("NumberOfPasswordPrompts=1"); // one answer per Enter, so that no account gets locked
    } else if (command.attempt == Attempt::again || !command.interactive) {
        option("BatchMode=yes");
    }
    if (command.attempt != Attempt::first && !command.facts.keeps_no_keys) {
        option("StrictHostKeyChecking=yes");
    }
    if (command.alone) {
        option("ControlPath=none");
        if (!command.facts.proxy_jump.empty()) {
            option("ProxyCommand=" + own_way_by(command));
        }
    }
    return output;
}

/// Removes debug output of ssh -v, which does not explain its end.
std::string without_debug(std::string_view errors)
{
    std::string kept;
    while (!errors.empty()) {
        const std::size_t end = std::min(errors.find('\n'), errors.size());
        if (!errors.starts_with("debug")) {
            kept.append(errors.substr(0, end)).append("\n");
        }
        errors.remove_prefix(std::min(end + 1, errors.size()));
    }
    return kept;
}

} // namespace

std::vector<std::string> ssh_arguments(const SshCommand& command)
{
    std::vector<std::string> output = with_options(command);
    output.insert(output.end(), {"--", command.host, command.program, "serve"});
    if (!command.early.empty()) {
        output.push_back(command.early);
    }
    return output;
}

std::vector<std::string> ssh_question(const SshCommand& command, bool with_ours)
{
    std::vector<std::string> output = with_ours ? with_options(command) : command.ssh;
    output.insert(output.end(), {"-G", "--", command.host, "true"}); // -f requires a command
    return output;
}

std::vector<std::string> ssh_check(const SshCommand& command)
{
    std::vector<std::string> output = command.ssh;
    output.insert(output.end(), {"-O", "check", "--", command.host});
    return output;
}

std::vector<std::string> ssh_knock(const SshCommand& command)
{
    std::vector<std::string> output = command.ssh;
    output.insert(output.end(),
                  {"-o", "ControlMaster=no", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                   "ClearAllForwardings=yes", "-W", "127.0.0.1:1", "--", command.host});
    return output;
}

std::string last_message(std::string_view errors)
{
    std::string_view found;
    while (!errors.empty()) {
        const std::size_t end = std::min(errors.find('\n'), errors.size());
        std::string_view line = errors.substr(0, end);
        errors.remove_prefix(std::min(end + 1, errors.size()));
        while (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (!is_noise(line)) {
            found = line;
        }
    }
    return peer_text(found);
}

namespace {

/// The messages of a ProxyCommand or a jump from before ssh noticed its end.
std::string message_of_proxy(std::string_view errors)
{
    const std::size_t before = errors.rfind('\n', errors.find(k_without_address));
    const std::size_t end = before == std::string_view::npos ? 0 : before;
    return last_message(errors.substr(0, std::min(end, errors.find(k_no_greeting))));
}

} // namespace

Verdict classify_ssh(const SshEnd& end, const SshCommand& command)
{
    const int status = end.status;
    const std::string errors = without_debug(end.errors);
    const std::string host = sanitised(command.host);
    const std::string output = last_message(errors);
    if (status == k_ssh_itself &&
        (has(errors, "Host key verification failed") || has(errors, "IDENTIFICATION HAS CHANGED") ||
         has(errors, "REVOKED HOST KEY"))) {
        return classify_key(errors, command);
    }
    if (status == k_ssh_itself && command.attempt != Attempt::first && is_refusal(errors)) {
        return {Verdict::What::needs_user, login_wanted(command.host, output)};
    }
    if (status == k_ssh_itself && is_refusal(errors)) {
        return {Verdict::What::stop, login_refused(command.host, output, command.interactive)};
    }
    if (status == k_ssh_itself &&
        (has(errors, "Bad configuration option") || has(errors, "bad configuration options") ||
         has(errors, "no argument after keyword"))) {
        return stop(Error::Kind::usage, fmt::format("ssh: {}", output));
    }
    if (status == k_ssh_itself && has(errors, k_without_address)) {
        return {Verdict::What::broken, proxy_ended(command.host, message_of_proxy(errors))};
    }
    if (status == k_ssh_itself &&
        (has(errors, k_no_greeting) || output.starts_with("Connection closed by "))) {
        return {Verdict::What::broken, closed_before_login(command.host, output)};
    }
    const bool csh_found_none = status == 1 && output.ends_with("Command not found.");
    if (status == k_not_found || status == k_not_executable || csh_found_none) {
        return stop(
            Error::Kind::not_found,
            fmt::format(
                "no {} on {}{}{}: it is not in the PATH of commands started by ssh. Set "
                "GPUQ_REMOTE, or `remote` in the local configuration, to its path on that host",
                sanitised(command.program), host, output.empty() ? "" : ", ", output));
    }
    if (status < k_killed || (status > k_killed + k_largest_signal && status != k_ssh_itself)) {
        return classify_other_program(end, output, command);
    }
    return {Verdict::What::broken,
            fail(Error::Kind::unreachable, output.empty()
                                               ? fmt::format("the connection to {} has ended", host)
                                               : fmt::format("{}: {}", host, output))};
}

} // namespace gpuq::remote
