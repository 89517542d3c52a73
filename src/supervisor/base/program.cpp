// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/program.h"

#include "core/exit_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

bool is_named(const std::string& text, std::string_view name)
{
    return text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=';
}

winsize as_winsize(TerminalSize size)
{
    winsize cells{};
    cells.ws_row = static_cast<unsigned short>(size.rows);
    cells.ws_col = static_cast<unsigned short>(size.columns);
    return cells;
}

/// Both sides of a new terminal.
struct Sides {
    Descriptor ours, programs;
};

Error no_terminal()
{
    return fail(
        Error::Kind::internal,
        fmt::format("can't open a terminal for the program on this node: {}", error_text(errno)));
}

Result<Sides> open_terminal(TerminalSize size)
{
    Sides sides;
    sides.ours.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    char name[64] = "";
    if (!sides.ours || ::grantpt(sides.ours.get()) != 0 || ::unlockpt(sides.ours.get()) != 0 ||
        ::ptsname_r(sides.ours.get(), name, sizeof name) != 0) {
        return no_terminal();
    }
    sides.programs.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios modes{};
    if (!sides.programs || ::tcgetattr(sides.programs.get(), &modes) != 0) {
        return no_terminal();
    }
    modes.c_iflag |= IUTF8; // erasing removes whole characters
    modes.c_cc[VERASE] = 0x7f;
    ::tcsetattr(sides.programs.get(), TCSANOW, &modes);
    const winsize cells = as_winsize(size);
    ::ioctl(sides.ours.get(), TIOCSWINSZ, &cells);
    return sides;
}

bool exists(const std::string& work_dir, const std::string& program)
{
    const bool absolute = program.starts_with('/');
    struct stat status {};
    return program.find('/') != std::string::npos &&
           ::stat((absolute ? program : work_dir + "/" + program).c_str(), &status) == 0;
}

NotStarted explain(const SpawnFailure& report, const std::vector<std::string>& argv,
                   const std::string& work_dir)
{
    const std::string reason = error_text(report.error);
    if (report.step == SpawnFailure::Step::change_directory) {
        return {static_cast<int>(ExitStatus::internal),
                fmt::format("the working directory {} can't be entered on this node: {}", work_dir,
                            reason)};
    }
    const bool missing = report.error == ENOENT || report.error == ENOTDIR;
    if (missing && exists(work_dir, argv[0])) {
        return {static_cast<int>(ExitStatus::not_found),
                fmt::format("{}: the interpreter in its first line, or the loader of a binary "
                            "program, does not exist on this node",
                            argv[0])};
    }
    if (missing) {
        return {static_cast<int>(ExitStatus::not_found),
                fmt::format("{}: not found on this node", argv[0])};
    }
    return {static_cast<int>(ExitStatus::not_executable),
            fmt::format("{}: can't be executed: {}", argv[0], reason)};
}

} // namespace

Environment Environment::own()
{
    std::vector<std::string> texts;
    for (char** each = ::environ; each && *each; ++each) {
        texts.emplace_back(*each);
    }
    return Environment(std::move(texts));
}

std::vector<std::pair<int, rlim_t>> as_resources(const SoftLimits& limits)
{
    std::vector<std::pair<int, rlim_t>> resources;
    for (const auto& [resource, wanted] :
         {std::pair{RLIMIT_CORE, limits.core}, std::pair{RLIMIT_STACK, limits.stack}}) {
        if (wanted) {
            resources.emplace_back(resource, *wanted);
        }
    }
    return resources;
}

void Environment::unset(std::string_view name)
{
    std::erase_if(m_texts, [&](const std::string& text) { return is_named(text, name); });
}

void Environment::set(std::string_view name, std::string_view value)
{
    unset(name);
    m_texts.push_back(fmt::format("{}={}", name, value));
}

void Environment::set_default(std::string_view name, std::string_view value)
{
    if (!has(name)) {
        set(name, value);
    }
}

std::optional<std::string> Environment::value(std::string_view name) const
{
    const auto found = std::find_if(m_texts.begin(), m_texts.end(),
                                    [&](const std::string& text) { return is_named(text, name); });
    return found == m_texts.end() ? std::nullopt : std::optional(found->substr(name.size() + 1));
}

std::vector<std::string> srun_of_ranks(std::vector<std::string> argv, const Request& request,
                                       const std::vector<std::string>& member)
{
    const int tasks = tasks_on_node(request);
    std::vector<std::string> arguments{"srun", fmt::format("--nodes={}", request.nodes),
                                       fmt::format("--ntasks={}", request.nodes * tasks),
                                       fmt::format("--ntasks-per-node={}", tasks),
                                       "--distribution=block", "--overlap", "--kill-on-bad-exit=1",
                                       // else those of this node, or none, as the site has it
                                       "--propagate=CORE,STACK"};
    if (request.input != Input::pipe) {
        arguments.push_back(request.input == Input::none ? "--input=none" : "--input=0");
    }
    arguments.push_back("--");
    arguments.insert(arguments.end(), member.begin(), member.end());
    arguments.insert(arguments.end(), std::make_move_iterator(argv.begin()),
                     std::make_move_iterator(argv.end()));
    return arguments;
}

Result<Program> Program::start(const Plan& plan)
{
    Program program;
    TRY_ASSIGN(const Streams theirs, plan.terminal ? program.make_terminal(*plan.terminal)
                                                   : program.make_pipes(plan.with_input));
    auto spawned = spawn({.argv = plan.argv,
                          .environment = plan.environment,
                          .search = Subprocess::Search::its_path,
                          .work_dir = plan.work_dir,
                          .descriptors = {theirs[0].get(), theirs[1].get(), theirs[2].get()},
                          .group = Subprocess::Group::session,
                          .terminal = plan.terminal ? theirs[0].get() : -1,
                          // It must not outlive the supervisor, even if the guardian is killed too.
                          .death_signal = SIGKILL,
                          .limits = as_resources(plan.limits)});
    if (!spawned) {
        return fail(Error::Kind::internal,
                    fmt::format("can't start the program on this node: {}", spawned.error().text));
    }
    program.m_argv = plan.argv;
    program.m_work_dir = plan.work_dir;
    program.m_process = *std::move(spawned);
    for (const int fd : {program.m_process.report.get(), program.m_input.get(),
                         program.m_output[0].get(), program.m_output[1].get()}) {
        if (fd >= 0) {
            set_nonblocking(fd);
        }
    }
    return program;
}

Result<Program::Streams> Program::make_pipes(bool with_input)
{
    TRY_ASSIGN(Pipe out, make_pipe());
    TRY_ASSIGN(Pipe err, make_pipe());
    Pipe in;
    if (with_input) {
        TRY_ASSIGN(in, make_pipe());
    } else {
        in.read.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    m_input = std::move(in.write);
    m_output = {std::move(out.read), std::move(err.read)};
    return Streams{std::move(in.read), std::move(out.write), std::move(err.write)};
}

Result<Program::Streams> Program::make_terminal(TerminalSize size)
{
    TRY_ASSIGN(Sides sides, open_terminal(size));
    m_input.reset(::fcntl(sides.ours.get(), F_DUPFD_CLOEXEC, 3));
    m_output[0] = std::move(sides.ours);
    Streams theirs;
    for (Descriptor& stream : theirs) {
        stream.reset(::fcntl(sides.programs.get(), F_DUPFD_CLOEXEC, 3));
    }
    m_terminal = std::move(sides.programs);
    return theirs;
}

std::optional<NotStarted> Program::read_report()
{
    const auto failure = failure_of(m_process);
    return failure ? std::optional(explain(*failure, m_argv, m_work_dir)) : std::nullopt;
}

void Program::signal(int number) const
{
    if (m_process.pid > 0) {
        ::kill(-m_process.pid, number);
    }
}

void Program::hang_up() const
{
    const pid_t foreground = m_output[0] ? ::tcgetpgrp(m_output[0].get()) : -1;
    for (const pid_t group : {foreground, m_process.pid}) {
        if (group > 0) {
            ::kill(-group, SIGHUP);
            ::kill(-group, SIGCONT);
        }
    }
}

void Program::resize(TerminalSize size) const
{
    if (m_output[0]) {
        const winsize cells = as_winsize(size);
        ::ioctl(m_output[0].get(), TIOCSWINSZ, &cells);
    }
}

} // namespace gpuq::supervisor
