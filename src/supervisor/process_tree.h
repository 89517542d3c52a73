// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// Orphans among the descendants become children of the calling process from now on.
void become_subreaper();

/// Path of this executable; when its file has been replaced since, of the one that is there now.
std::string own_program();

/// Every process below the calling one, zombies not counted, without those in `spared` and what is
/// below them.
std::vector<pid_t> descendants(const std::vector<pid_t>& spared = {});

/// Processor time that these and their ended children have used.
std::chrono::milliseconds cpu_time_of(const std::vector<pid_t>& processes);

/// That a process has a handler for a signal, or had one when it ended and is not reaped yet
/// (SigCgt of proc(5)). False where it can not be seen.
bool catches(pid_t pid, int signal);

/// What proc(5) tells of a process; empty where it can not be seen.
struct ProcessFacts {
    pid_t parent = 0;
    std::uint64_t caught = 0; ///< SigCgt
    std::string executable;
    std::string command_line; ///< words ended by NUL each
    std::string image;        ///< auxv: of each exec another, a fork has its parent's
};
ProcessFacts facts_of(pid_t pid);

/// All processes on this node that were started with `variable` (NAME=VALUE) in their environment,
/// wherever they hang in its tree; supervisors excepted.
std::vector<pid_t> started_with(const std::string& variable);

/// The value of a variable in the environment that a process was started with.
std::optional<std::string> variable_of(pid_t pid, const std::string& name);

/// Kills (SIGKILL) and reaps all that is below the calling process, again and again until nothing
/// is left or `patience` is over (a process in an uninterruptible sleep, or of another user).
/// True when nothing is left.
bool kill_descendants(std::chrono::milliseconds patience);

/// Kills all processes on this node, wherever they hang in its tree, that were started with
/// `variable` (NAME=VALUE) in their environment; supervisors, which may have inherited it from a
/// run around theirs, excepted. For when nobody is left who knows the tree.
void kill_by_variable(const std::string& variable, std::chrono::milliseconds patience);

} // namespace gpuq::supervisor
