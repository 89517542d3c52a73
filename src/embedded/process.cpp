// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/process.h"

#include "io/subprocess.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sstream>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

constexpr auto k_poll_interval = std::chrono::milliseconds(5);

/// The daemons serve many connections. The limit is bounded, since closing all descriptors at a
/// fork takes time.
constexpr rlim_t k_files = 65536;

/// In a session of its own, with stdin from /dev/null.
Subprocess plan_of(const Command& command)
{
    return {.argv = command.arguments,
            .environment = command.environment,
            .group = Subprocess::Group::session,
            .file_mask = 022,
            .limits = {{RLIMIT_NOFILE, k_files}}};
}

/// Fields of /proc/PID/stat; the name may contain blanks and parentheses.
struct Stat {
    std::string command;
    char state = '?';
    int parent = 0;
    std::uint64_t start_time = 0;
};

std::optional<Stat> read_stat(int pid)
{
    const std::string text = content_of(fmt::format("/proc/{}/stat", pid));
    const std::size_t open_bracket = text.find('(');
    const std::size_t close_bracket = text.rfind(')');
    if (open_bracket == std::string::npos || close_bracket == std::string::npos) {
        return std::nullopt;
    }
    Stat stat;
    stat.command = text.substr(open_bracket + 1, close_bracket - open_bracket - 1);
    std::istringstream fields(text.substr(close_bracket + 1));
    fields >> stat.state >> stat.parent;
    std::string skipped;
    for (int field = 5; field < 22; ++field) {
        fields >> skipped;
    }
    fields >> stat.start_time;
    return fields ? std::optional(stat) : std::nullopt;
}

std::vector<std::string> environment_of(int pid)
{
    std::vector<std::string> variables;
    std::istringstream text(content_of(fmt::format("/proc/{}/environ", pid)));
    for (std::string variable; std::getline(text, variable, '\0');) {
        variables.push_back(variable);
    }
    return variables;
}

} // namespace

Result<ProcessId> start_daemon(const Command& command, const std::string& log)
{
    const Descriptor output(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!output) {
        return fail(Error::Kind::io,
                    fmt::format("can not write {}: {}", log, std::strerror(errno)));
    }
    Subprocess plan = plan_of(command);
    plan.descriptors = {Subprocess::k_null, output.get(), output.get()};
    TRY_ASSIGN(Spawned process, spawn(plan));
    if (const auto failure = failure_of(process)) {
        (void)gpuq::wait_for(process.pid);
        return fail(Error::Kind::io, fmt::format("can not start {}: {}", command.arguments[0],
                                                 std::strerror(failure->error)));
    }
    // The child has not been waited for, so it exists at least as a zombie.
    return identify(process.pid).value_or(ProcessId{process.pid, 0});
}

Result<Finished> run_command(const Command& command, Deadline deadline)
{
    const auto limit =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    TRY_ASSIGN(gpuq::Finished finished, run(plan_of(command), {.limit = limit}));
    if (!finished.in_time) {
        return fail(Error::Kind::unreachable,
                    fmt::format("{} did not answer in time", command.arguments[0]));
    }
    return Finished{finished.status, std::move(finished.out)};
}

std::optional<std::string> find_program(const std::string& name, const char* path)
{
    const std::string directories =
        fmt::format("{}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", path ? path : "");
    std::istringstream list(directories);
    for (std::string directory; std::getline(list, directory, ':');) {
        const std::string candidate = directory + "/" + name;
        if (directory.starts_with('/') && access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
    }
    return std::nullopt;
}

std::string content_of(const std::string& path)
{
    std::string content;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char buffer[4096];
    for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;) {
        content.append(buffer, static_cast<std::size_t>(size));
    }
    if (fd >= 0) {
        close(fd);
    }
    return content;
}

std::optional<ProcessId> identify(int pid)
{
    const auto stat = read_stat(pid);
    return stat ? std::optional(ProcessId{pid, stat->start_time}) : std::nullopt;
}

bool is_alive(const ProcessId& process)
{
    const auto stat = read_stat(process.pid);
    return stat && stat->start_time == process.start_time && stat->state != 'Z' &&
           stat->state != 'X';
}

std::vector<ProcessFacts> all_processes()
{
    std::vector<ProcessFacts> processes;
    DIR* directory = opendir("/proc");
    while (const dirent* entry = directory ? readdir(directory) : nullptr) {
        const std::string name = entry->d_name;
        int pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error != std::errc{} || *end != '\0') {
            continue;
        }
        const auto stat = read_stat(pid);
        if (stat && stat->state != 'Z') {
            processes.push_back(
                {{pid, stat->start_time}, stat->parent, stat->command, environment_of(pid)});
        }
    }
    if (directory) {
        closedir(directory);
    }
    return processes;
}

bool end_processes(const std::vector<ProcessId>& processes, int signal, Deadline deadline)
{
    for (const ProcessId& process : processes) {
        if (is_alive(process)) {
            kill(process.pid, signal);
        }
    }
    const auto all_gone = [&] {
        return std::none_of(processes.begin(), processes.end(), is_alive);
    };
    return wait_for(all_gone, deadline);
}

bool wait_for(const std::function<bool()>& condition, Deadline deadline)
{
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= deadline) {
            return false;
        }
        std::this_thread::sleep_for(k_poll_interval);
    }
    return true;
}

} // namespace gpuq::embedded
