// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// From now on, orphaned descendants become children of the calling process.
void become_subreaper();

/// The path of this executable. If its file has been replaced, the path of the new one.
std::string own_program();

/// All processes below the calling one except zombies, those in `spared` and their descendants.
std::vector<pid_t> descendants(const std::vector<pid_t>& spared = {});

/// CPU time used by these processes and their ended children.
std::chrono::milliseconds cpu_time_of(const std::vector<pid_t>& processes);

/// True if a process handles a signal, or did when it ended and has not been reaped (SigCgt in
/// proc(5)). False if the process is not visible.
bool catches(pid_t pid, int signal);

/// Properties of a process from proc(5); empty if it is not visible.
struct ProcessFacts {
    pid_t parent = 0;
    std::uint64_t caught = 0; ///< SigCgt
    std::string executable;
    std::string command_line; ///< arguments, each terminated by NUL
    std::string image;        ///< auxv: changed by each exec, inherited by a fork
};
ProcessFacts facts_of(pid_t pid);

/// All processes on this node that were started with `variable` (NAME=VALUE) in their environment,
/// wherever they are in the process tree; supervisors excluded.
std::vector<pid_t> started_with(const std::string& variable);

/// The value of a variable in the environment that a process was started with.
std::optional<std::string> variable_of(pid_t pid, const std::string& name);

/// Kills (SIGKILL) and reaps all processes below the calling one, repeatedly, until none is left or
/// `patience` is over (a process in uninterruptible sleep, or of another user). True if none is
/// left.
bool kill_descendants(std::chrono::milliseconds patience);

/// Kills all processes on this node that were started with `variable` (NAME=VALUE) in their
/// environment, wherever they are in the process tree. Supervisors are excluded, because they may
/// have inherited it from an enclosing run. Used when no process is left that knows the tree.
void kill_by_variable(const std::string& variable, std::chrono::milliseconds patience);

} // namespace gpuq::supervisor
