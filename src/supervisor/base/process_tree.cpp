// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/process_tree.h"

#include "supervisor/base/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

struct Process {
    pid_t pid = 0;
    pid_t parent = 0;
    bool zombie = false;
};

bool read_process(pid_t pid, Process& process)
{
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
    char text[512];
    const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    // The name in parentheses may itself contain parentheses.
    const char* rest = std::strrchr(text, ')');
    char state = 0;
    int parent = 0;
    if (!rest || std::sscanf(rest + 1, " %c %d", &state, &parent) != 2) {
        return false;
    }
    process = {pid, parent, state == 'Z' || state == 'X'};
    return true;
}

std::vector<Process> all_processes()
{
    std::vector<Process> processes;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
    while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
        const pid_t pid = std::atoi(entry->d_name);
        Process process;
        if (pid > 0 && read_process(pid, process)) {
            processes.push_back(process);
        }
    }
    return processes;
}

/// The text of a file in /proc, of any length.
std::string proc_text(pid_t pid, const char* name)
{
    const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    char piece[4096];
    ssize_t size = 0;
    while (file && (size = ::read(file.get(), piece, sizeof piece)) > 0) {
        text.append(piece, static_cast<std::size_t>(size));
    }
    return text;
}

std::string executable(pid_t pid)
{
    char path[4096];
    const std::string link = "/proc/" + std::to_string(pid) + "/exe";
    const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
    return std::string(path, size > 0 ? static_cast<std::size_t>(size) : 0);
}

/// SigCgt in proc(5); 0 if it is not visible.
std::uint64_t caught_by(pid_t pid)
{
    const std::string text = proc_text(pid, "status");
    const std::size_t at = text.find("\nSigCgt:");
    unsigned long long caught = 0;
    return at != std::string::npos && std::sscanf(text.c_str() + at, " SigCgt: %llx", &caught) == 1
               ? caught
               : 0;
}

bool was_started_with(pid_t pid, const std::string& variable)
{
    // NUL before and after each variable.
    const std::string wanted = '\0' + variable + '\0';
    return ('\0' + proc_text(pid, "environ")).find(wanted) != std::string::npos;
}

} // namespace

std::string own_program()
{
    std::error_code error;
    std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
    constexpr std::string_view k_deleted = " (deleted)";
    if (path.ends_with(k_deleted)) {
        path.erase(path.size() - k_deleted.size());
    }
    return path;
}

void become_subreaper()
{
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

std::vector<pid_t> descendants(const std::vector<pid_t>& spared)
{
    std::vector<Process> rest = all_processes();
    std::vector<pid_t> below{::getpid()};
    std::vector<pid_t> found;
    for (std::size_t i = 0; i < below.size(); ++i) {
        const auto children = std::partition(
            rest.begin(), rest.end(), [&](const Process& each) { return each.parent != below[i]; });
        for (auto each = children; each != rest.end(); ++each) {
            if (std::find(spared.begin(), spared.end(), each->pid) != spared.end()) {
                continue;
            }
            below.push_back(each->pid);
            if (!each->zombie) {
                found.push_back(each->pid);
            }
        }
        rest.erase(children, rest.end());
    }
    return found;
}

std::chrono::milliseconds cpu_time_of(const std::vector<pid_t>& processes)
{
    unsigned long long ticks = 0;
    for (const pid_t pid : processes) {
        const std::string text = proc_text(pid, "stat");
        const std::size_t name_end = text.rfind(')');
        unsigned long long own = 0, system = 0, childrens = 0, system_of_children = 0;
        // Fields 14 to 17 of proc(5).
        if (name_end != std::string::npos &&
            std::sscanf(text.c_str() + name_end + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &own,
                        &system, &childrens, &system_of_children) == 4) {
            ticks += own + system + childrens + system_of_children;
        }
    }
    return std::chrono::milliseconds(ticks * 1000 /
                                     static_cast<unsigned long long>(::sysconf(_SC_CLK_TCK)));
}

bool catches(pid_t pid, int signal)
{
    return (caught_by(pid) >> (signal - 1) & 1) != 0;
}

ProcessFacts facts_of(pid_t pid)
{
    Process process;
    (void)read_process(pid, process);
    ProcessFacts facts;
    facts.parent = process.parent;
    facts.executable = executable(pid);
    facts.command_line = proc_text(pid, "cmdline");
    facts.image = proc_text(pid, "auxv");
    // Read last: an exec in the meantime removes handlers and adds none.
    facts.caught = caught_by(pid);
    return facts;
}

std::vector<pid_t> started_with(const std::string& variable)
{
    const std::string own = executable(::getpid());
    std::vector<pid_t> found;
    for (const Process& process : all_processes()) {
        if (!process.zombie && process.pid != ::getpid() && executable(process.pid) != own &&
            was_started_with(process.pid, variable)) {
            found.push_back(process.pid);
        }
    }
    return found;
}

std::optional<std::string> variable_of(pid_t pid, const std::string& name)
{
    const std::string text = '\0' + proc_text(pid, "environ");
    const std::string wanted = '\0' + name + '=';
    const std::size_t at = text.find(wanted);
    if (at == std::string::npos) {
        return std::nullopt;
    }
    const std::size_t begin = at + wanted.size();
    return text.substr(begin, text.find('\0', begin) - begin);
}

bool kill_descendants(std::chrono::milliseconds patience)
{
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
        for (const pid_t pid : descendants()) {
            ::kill(pid, SIGKILL);
        }
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) {
            return true;
        }
        if (std::chrono::steady_clock::now() >= until) {
            return false;
        }
        ::poll(nullptr, 0, 2);
    }
}

void kill_by_variable(const std::string& variable, std::chrono::milliseconds patience)
{
    const auto until = std::chrono::steady_clock::now() + patience;
    bool found = true;
    while (found && std::chrono::steady_clock::now() < until) {
        found = false;
        for (const pid_t pid : started_with(variable)) {
            found = ::kill(pid, SIGKILL) == 0 || found;
        }
        ::poll(nullptr, 0, 5);
    }
}

} // namespace gpuq::supervisor
