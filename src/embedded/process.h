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

/// A program and its whole environment; no shell is involved.
struct Command {
    std::vector<std::string> words; ///< words[0] is a path
    std::vector<std::string> environment;
};

/// Starts a child in a session of its own, stdin /dev/null, stdout and stderr appended to `log`.
Result<ProcessId> start_daemon(const Command& command, const std::string& log);

struct Finished {
    int status = 0; ///< 128+N for signal N
    std::string output;
};

/// Runs a program to its end, stdout and stderr together. `unreachable` past the deadline, when
/// it was killed.
Result<Finished> run_command(const Command& command, Deadline deadline);

/// The first executable file `name` in the folders of `path` (as in PATH), then in the system's.
std::optional<std::string> find_program(const std::string& name, const char* path);

/// The whole of a file; empty when it can not be read. For /proc, where a file ends with its
/// process in the middle of reading, which streams of the standard library answer with an
/// exception.
std::string content_of(const std::string& path);

/// The process `pid` as it is now; nothing when there is none.
std::optional<ProcessId> identify(int pid);
/// False for an ended process, for a zombie, and for a later process with the same number.
bool is_alive(const ProcessId& process);

/// What /proc tells about a process. Variables only of one's own processes, unless root.
struct ProcessFacts {
    ProcessId id;
    int parent = 0;
    std::string command; ///< name of the executable, at most 15 bytes
    std::vector<std::string> environment;
};
std::vector<ProcessFacts> all_processes();

/// Signals each, waits until all are gone; true when they are before the deadline.
bool end_processes(const std::vector<ProcessId>& processes, int signal, Deadline deadline);

/// Asks `condition` every few milliseconds; false at the deadline.
bool wait_for(const std::function<bool()>& condition, Deadline deadline);

} // namespace gpuq::embedded
