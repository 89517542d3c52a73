// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_words.h"

#include "core/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::remote {
namespace {

constexpr int k_not_found = 127;
constexpr int k_not_executable = 126;
constexpr int k_ssh_itself = 255;
constexpr std::size_t k_most_words = 300;

bool is_one_of(char c, std::string_view others)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
}

bool has(std::string_view text, std::string_view part)
{
    return text.find(part) != std::string_view::npos;
}

/// Lines that ssh writes around what it has to say.
bool is_noise(std::string_view line)
{
    static constexpr std::array<std::string_view, 5> k_beginnings = {
        "@@@@", "Warning: Permanently added", "debug", "Connection to ", "** "};
    return line.empty() || std::any_of(k_beginnings.begin(), k_beginnings.end(),
                                       [&](auto beginning) { return line.starts_with(beginning); });
}

/// `Offending ED25519 key in /home/ada/.ssh/known_hosts:3`
std::string offending(std::string_view errors)
{
    const std::size_t begin = errors.find("Offending ");
    if (begin == std::string_view::npos) {
        return {};
    }
    std::string_view line = errors.substr(begin, errors.find('\n', begin) - begin);
    const std::size_t in = line.find(" in ");
    return in == std::string_view::npos
               ? std::string()
               : fmt::format(" (it stands in {})", sanitised(last_words(line.substr(in + 4))));
}

Verdict stop(Error::Kind kind, std::string text)
{
    return {Verdict::What::stop, fail(kind, std::move(text))};
}

Verdict judge_key(std::string_view errors, const SshCommand& command)
{
    const std::string host = sanitised(command.host);
    if (has(errors, "IDENTIFICATION HAS CHANGED") || has(errors, "host key has changed") ||
        has(errors, "host key for") || has(errors, "REVOKED HOST KEY")) {
        return stop(Error::Kind::denied,
                    fmt::format("the host key of {} has changed{}: it may be another machine that "
                                "answers. gpuq stops; ask the site, and only then remove the old "
                                "key",
                                host, offending(errors)));
    }
    return stop(Error::Kind::denied,
                fmt::format("the host key of {} is not known here, and gpuq asks about one only on "
                            "a terminal: connect once by hand, ssh {}",
                            host, host));
}

} // namespace

Result<Place> place_from(std::string_view text)
{
    const std::size_t colon = text.find(':');
    Place place{std::string(text.substr(0, colon)),
                colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1))};
    if (place.host.empty()) {
        return fail(Error::Kind::usage, "--host: which host? --host NAME, or NAME:FOLDER");
    }
    // A name that begins with - would be an option of ssh's.
    if (place.host.front() == '-' || !std::all_of(place.host.begin(), place.host.end(),
                                                  [](char c) { return is_one_of(c, "._-@+"); })) {
        return fail(Error::Kind::usage,
                    fmt::format("--host: '{}' is no name of a host", sanitised(place.host)));
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
    return fail(Error::Kind::usage,
                fmt::format("GPUQ_REMOTE: '{}': a path of letters, digits and /._-+~, for a "
                            "shell reads it there",
                            sanitised(program)));
}

std::vector<std::string> ssh_words(const SshCommand& command)
{
    std::vector<std::string> words = command.ssh;
    const auto option = [&](const char* text) { words.insert(words.end(), {"-o", text}); };
    words.insert(words.end(), {"-T", "-x", "-e", "none"});
    option("ClearAllForwardings=yes");
    option("RemoteCommand=none");
    option("ConnectTimeout=10");
    if (command.attempt == Attempt::again) {
        option("BatchMode=yes");
        option("StrictHostKeyChecking=yes");
    } else if (!command.person) {
        option("BatchMode=yes");
    }
    if (command.alone) {
        option("ControlPath=none");
    }
    words.insert(words.end(), {"--", command.host, command.program, "serve"});
    return words;
}

std::string last_words(std::string_view errors)
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
    return sanitised(found.substr(0, k_most_words));
}

Verdict judge_ssh(int status, std::string_view errors, const SshCommand& command)
{
    const std::string host = sanitised(command.host);
    const std::string words = last_words(errors);
    if (status == k_ssh_itself &&
        (has(errors, "Host key verification failed") || has(errors, "IDENTIFICATION HAS CHANGED") ||
         has(errors, "REVOKED HOST KEY"))) {
        return judge_key(errors, command);
    }
    if (status == k_ssh_itself && has(errors, "Permission denied (") &&
        command.attempt == Attempt::again) {
        return stop(Error::Kind::denied,
                    fmt::format("{} wants a password or a key's passphrase again ({}), and gpuq "
                                "asks for one only when it is started. An agent (ssh-add) or "
                                "ControlMaster makes it needless",
                                host, words));
    }
    if (status == k_ssh_itself && has(errors, "Permission denied (")) {
        return stop(Error::Kind::denied,
                    fmt::format("{} lets nobody in by what is offered here ({}){}: see whether ssh "
                                "{} works",
                                host, words,
                                command.person ? "" : ", and without a terminal ssh asks nobody",
                                host));
    }
    if (status == k_ssh_itself &&
        (has(errors, "Bad configuration option") || has(errors, "bad configuration options") ||
         has(errors, "no argument after keyword"))) {
        return stop(Error::Kind::usage, fmt::format("ssh: {}", words));
    }
    if (status == k_not_found || status == k_not_executable) {
        return stop(Error::Kind::not_found,
                    fmt::format("no {} on {}{}{}: a command that ssh starts there has not found it "
                                "in its PATH. Set GPUQ_REMOTE, or `remote` in the "
                                "configuration here, to its path there",
                                sanitised(command.program), host, words.empty() ? "" : ", ",
                                words));
    }
    if (has(errors, "'serve' is not in this version") || has(errors, "no verb 'serve'")) {
        return stop(
            Error::Kind::usage,
            fmt::format("gpuq on {} is too old for --host: ask for a newer one there", host));
    }
    return {Verdict::What::broken,
            fail(Error::Kind::unreachable, words.empty()
                                               ? fmt::format("the connection to {} has ended", host)
                                               : fmt::format("{}: {}", host, words))};
}

} // namespace gpuq::remote
