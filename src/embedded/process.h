// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/state.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::embedded {

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline in(std::chrono::milliseconds time)
{
    return std::chrono::steady_clock::now() + time;
}

/// A program and its complete environment; no shell is involved.
struct Command {
    std::vector<std::string> arguments; ///< words[0] is a path
    std::vector<std::string> environment;
};

/// Starts a child in its own session, with stdin from /dev/null, and stdout and stderr appended to
/// `log`. Returns once the program is executed; `io`, with the reason, if it can't be.
Result<ProcessId> start_daemon(const Command& command, const std::string& log);

struct Finished {
    int status = 0; ///< 128+N for signal N
    std::string output;
};

/// Runs a program and collects stdout and stderr. `unreachable` when the deadline passed and it was
/// killed.
Result<Finished> run_command(const Command& command, Deadline deadline);

/// The first executable file `name` in the directories of `path` (as in PATH), then in the
/// system's.
std::optional<std::string> find_program(const std::string& name, const char* path);

/// Contents of a file; empty when it cannot be read. Suitable for /proc, where reading fails when
/// the process ends; standard library streams throw in that case.
std::string content_of(const std::string& path);

/// The current process with this pid, if any.
std::optional<ProcessId> identify(int pid);
/// False for an ended process, a zombie, and a later process with the same pid.
bool is_alive(const ProcessId& process);

/// Data about a process from /proc. Environments of other users' processes require root.
struct ProcessFacts {
    ProcessId id;
    int parent = 0;
    std::string command; ///< name of the executable, at most 15 bytes
    std::vector<std::string> environment;
};
std::vector<ProcessFacts> all_processes();

/// Signals all processes and waits until they have ended; false at the deadline.
bool end_processes(const std::vector<ProcessId>& processes, int signal, Deadline deadline);

/// Polls `condition` every few milliseconds; false at the deadline.
bool wait_for(const std::function<bool()>& condition, Deadline deadline);

} // namespace gpuq::embedded
