// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/process.h"

#include "core/words.h"
#include "io/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

constexpr auto k_poll_interval = std::chrono::milliseconds(5);

/// The daemons serve many connections. The limit is bounded, since closing all descriptors at a
/// fork takes time.
void raise_file_limit()
{
    constexpr rlim_t k_files = 65536;
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = std::min(limit.rlim_max, k_files);
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/// Executes `command` in the child. Only async-signal-safe calls.
[[noreturn]] void become(char* const* words, char* const* environment, int output)
{
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGHUP, SIG_DFL);
    umask(022);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(output, 1);
    dup2(output, 2);
    close_from(STDERR_FILENO + 1);
    raise_file_limit();
    execve(words[0], words, environment);
    _exit(errno == ENOENT ? 127 : 126);
}

Result<int> start(const Command& command, int output)
{
    const std::vector<char*> words = pointers(command.words);
    const std::vector<char*> environment = pointers(command.environment);
    const int pid = fork();
    if (pid < 0) {
        return fail(Error::Kind::io,
                    fmt::format("can not start {}: {}", command.words[0], std::strerror(errno)));
    }
    if (pid == 0) {
        become(words.data(), environment.data(), output);
    }
    return pid;
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

/// Reads to the end of file; false at the deadline.
bool read_all(int fd, std::string& output, Deadline deadline)
{
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd waiting{fd, POLLIN, 0};
        if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
            return false;
        }
        char buffer[4096];
        const ssize_t size = read(fd, buffer, sizeof buffer);
        if (size == 0 || (size < 0 && errno != EINTR)) {
            return true;
        }
        output.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
}

} // namespace

Result<ProcessId> start_daemon(const Command& command, const std::string& log)
{
    const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output < 0) {
        return fail(Error::Kind::io,
                    fmt::format("can not write {}: {}", log, std::strerror(errno)));
    }
    auto pid = start(command, output);
    close(output);
    if (!pid) {
        return std::move(pid).error();
    }
    // The child has not been waited for, so it exists at least as a zombie.
    return identify(*pid).value_or(ProcessId{*pid, 0});
}

Result<Finished> run_command(const Command& command, Deadline deadline)
{
    TRY_ASSIGN(Pipe pipe, make_pipe());
    auto pid = start(command, pipe.write.get());
    pipe.write.reset();
    Finished finished;
    const bool in_time = pid.has_value() && read_all(pipe.read.get(), finished.output, deadline);
    pipe.read.reset();
    if (!pid) {
        return std::move(pid).error();
    }
    if (!in_time) {
        kill(-*pid, SIGKILL);
        kill(*pid, SIGKILL);
    }
    int status = 0;
    waitpid(*pid, &status, 0);
    if (!in_time) {
        return fail(Error::Kind::unreachable,
                    fmt::format("{} did not answer in time", command.words[0]));
    }
    finished.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return finished;
}

std::optional<std::string> find_program(const std::string& name, const char* path)
{
    const std::string folders =
        fmt::format("{}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", path ? path : "");
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');) {
        const std::string candidate = folder + "/" + name;
        if (folder.starts_with('/') && access(candidate.c_str(), X_OK) == 0) {
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
    DIR* folder = opendir("/proc");
    while (const dirent* entry = folder ? readdir(folder) : nullptr) {
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
    if (folder) {
        closedir(folder);
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
