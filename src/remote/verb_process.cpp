// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/verb_process.h"

#include "core/key.h"
#include "io/local_socket.h"
#include "io/subprocess.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pty.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>
#include <vector>

namespace gpuq::remote {
namespace {

constexpr std::array<std::string_view, 13> k_passed = {
    "TERM",    "COLORTERM", "NO_COLOR",        "COLUMNS",      "LANG",        "LC_ALL", "LC_CTYPE",
    "LC_TIME", "TZ",        "GPUQ_DETACH_KEY", "GPUQ_CLUSTER", "GPUQ_BUDGET", k_called,
};
constexpr std::string_view k_own = "OWN ";
constexpr std::string_view k_left = "LEFT ";
constexpr std::string_view k_ssh = "SSH ";
constexpr int k_facts = 3; ///< descriptor number in the verb

std::string_view name_of(std::string_view variable)
{
    return variable.substr(0, variable.find('='));
}

std::string home()
{
    const char* const variable = std::getenv("HOME");
    if (variable != nullptr && *variable == '/') {
        return variable;
    }
    const passwd* const entry = ::getpwuid(::getuid());
    return entry == nullptr ? "/" : entry->pw_dir;
}

std::string path_of(const std::string& directory)
{
    if (directory.empty() || directory == "~") {
        return home();
    }
    if (directory.starts_with("~/")) {
        return home() + directory.substr(1);
    }
    return directory.starts_with('/') ? directory : home() + "/" + directory;
}

/// The verb's environment: that of this process and the variables that the client may set.
std::vector<std::string> environment(const wire::remote::Start& start)
{
    std::vector<std::string> variables;
    const auto is_given = [&](std::string_view variable) {
        return std::any_of(
            start.variables.begin(), start.variables.end(),
            [&](const std::string& given) { return name_of(given) == name_of(variable); });
    };
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view variable(*entry);
        if (name_of(variable) != "GPUQ_HOST" && name_of(variable) != k_serve_descriptor &&
            !(may_pass(variable) && is_given(variable))) {
            variables.emplace_back(variable);
        }
    }
    for (const std::string& variable : start.variables) {
        if (may_pass(variable)) {
            variables.push_back(variable);
        }
    }
    variables.push_back(fmt::format("{}={}", k_serve_descriptor, k_facts));
    return variables;
}

struct Terminal {
    Descriptor ours, verbs;
};

Result<Terminal> new_terminal(const wire::remote::Start& start)
{
    winsize size{};
    size.ws_row = static_cast<unsigned short>(start.size.rows);
    size.ws_col = static_cast<unsigned short>(start.size.columns);
    int ours = -1, verbs = -1;
    if (::openpty(&ours, &verbs, nullptr, nullptr, &size) != 0) {
        return fail(Error::Kind::io, fmt::format("a terminal: {}", std::strerror(errno)));
    }
    Terminal made{Descriptor(ours), Descriptor(verbs)};
    ::fcntl(ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(verbs, F_SETFD, FD_CLOEXEC);
    termios modes{};
    if (!start.raw && ::tcgetattr(verbs, &modes) == 0) {
        // The user's terminal does echo and newline processing.
        modes.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL);
        modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
        ::tcsetattr(verbs, TCSANOW, &modes);
    }
    return made;
}

template <typename Number>
bool take_number(std::string_view& text, Number& number)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' ')) {
        text.remove_prefix(1);
    }
    return true;
}

std::optional<std::uint64_t> number_behind(std::string_view word, std::string_view line)
{
    std::uint64_t number = 0;
    if (!line.starts_with(word)) {
        return std::nullopt;
    }
    line.remove_prefix(word.size());
    return take_number(line, number) ? std::optional(number) : std::nullopt;
}

} // namespace

bool may_pass(std::string_view variable)
{
    return variable.find('=') != std::string_view::npos &&
           std::find(k_passed.begin(), k_passed.end(), name_of(variable)) != k_passed.end();
}

Result<VerbProcess> start_verb(const std::string& program, const wire::remote::Start& start)
{
    VerbProcess verb;
    Descriptor slave;
    const auto& is_terminal = start.terminals;
    if (std::any_of(is_terminal.begin(), is_terminal.end(), [](bool is) { return is; })) {
        TRY_ASSIGN(Terminal terminal, new_terminal(start));
        verb.terminal = std::move(terminal.ours);
        slave = std::move(terminal.verbs);
    }
    std::array<Descriptor, 3> theirs;
    if (start.no_input && !is_terminal[0]) {
        theirs[0].reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    } else if (!is_terminal[0]) {
        TRY_ASSIGN(Pipe pipe, make_pipe());
        theirs[0] = std::move(pipe.read);
        verb.input = std::move(pipe.write);
    }
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
        if (!is_terminal[i]) {
            TRY_ASSIGN(Pipe pipe, make_pipe());
            theirs[i] = std::move(pipe.write);
            // A larger pipe means fewer wakeups during heavy output.
            ::fcntl(pipe.read.get(), F_SETPIPE_SZ, k_largest_pipe);
            (i == 1 ? verb.out : verb.err) = std::move(pipe.read);
        }
    }
    TRY_ASSIGN(auto ends, make_socket_pair());
    verb.facts = std::move(ends[0]);
    const Descriptor& facts = ends[1];

    std::vector<std::string> arguments{"gpuq"};
    arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
    const std::string directory = path_of(start.directory);
    std::vector<int> streams;
    for (const Descriptor& stream : theirs) {
        streams.push_back(stream ? stream.get() : slave.get());
    }
    static_assert(k_facts == 3);
    streams.push_back(facts.get());
    TRY_ASSIGN(Spawned process, spawn({.argv = std::move(arguments),
                                       .executable = program,
                                       .environment = environment(start),
                                       .work_dir = directory,
                                       .descriptors = std::move(streams),
                                       .group = Subprocess::Group::session,
                                       .terminal = slave.get(),
                                       .death_signal = SIGHUP}));
    const auto failure = failure_of(process);
    if (failure && failure->step == SpawnFailure::Step::change_directory) {
        (void)wait_for(process.pid);
        return fail(Error::Kind::missing,
                    fmt::format("{}: {}", sanitised(directory), std::strerror(failure->error)));
    }
    verb.pid = process.pid;
    return verb;
}

std::string line_of(const wire::remote::Following& following)
{
    return fmt::format("{} {} {} {} {}\n", following.key, following.job, following.link,
                       following.out, following.err);
}

std::optional<wire::remote::Following> following_from(std::string_view line)
{
    wire::remote::Following following;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || !RunKey::parse(line.substr(0, space))) {
        return std::nullopt;
    }
    following.key = line.substr(0, space);
    line.remove_prefix(space + 1);
    return take_number(line, following.job) && take_number(line, following.link) &&
                   take_number(line, following.out) && take_number(line, following.err)
               ? std::optional(following)
               : std::nullopt;
}

std::string line_of(const wire::remote::SshTarget& target)
{
    return fmt::format("{}{} {} {}\n", k_ssh, target.key, target.job, target.user);
}

std::optional<wire::remote::SshTarget> ssh_target_from(std::string_view line)
{
    if (!line.starts_with(k_ssh)) {
        return std::nullopt;
    }
    line.remove_prefix(k_ssh.size());
    wire::remote::SshTarget target;
    target.key = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(target.key.size() + 1, line.size()));
    if (!take_number(line, target.job)) {
        return std::nullopt;
    }
    target.user = line;
    return fault_in(target, Sender::server) ? std::nullopt : std::optional(target);
}

std::string line_of_own(std::uint64_t bytes)
{
    return fmt::format("{}{}\n", k_own, bytes);
}

std::optional<std::uint64_t> own_from(std::string_view line)
{
    return number_behind(k_own, line);
}

std::string line_of_left(std::uint64_t bytes)
{
    return fmt::format("{}{}\n", k_left, bytes);
}

std::optional<std::uint64_t> left_from(std::string_view line)
{
    return number_behind(k_left, line);
}

} // namespace gpuq::remote
