// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <utility>
#include <vector>

/// Child processes that execute another program, without a shell. Between fork and exec the child
/// makes only async-signal-safe calls, so a process with threads may start them too.
namespace gpuq {

/// A program, and everything that its process does not inherit: its signals have their default
/// actions and none is blocked, and no descriptors are open in it but those listed here.
struct Subprocess {
    static constexpr int k_null = -1; ///< /dev/null, for reading and writing

    std::vector<std::string> argv;
    std::string executable = {}; ///< executed in place of argv[0], if not empty
    /// NAME=VALUE, the complete environment; nullopt: that of this process.
    std::optional<std::vector<std::string>> environment = {};
    /// The PATH in which a name without a slash is searched. As in a shell, a file of an unknown
    /// format is passed to /bin/sh, unless it is a program for another architecture with a slash
    /// in its name.
    enum class Search { own_path, its_path } search = Search::own_path;
    std::string work_dir = {}; ///< empty: that of this process
    /// The element with index N becomes descriptor N of the child.
    std::vector<int> descriptors = {k_null, k_null, k_null};
    /// Its process group: this process's, one of its own, or one in a session of its own.
    enum class Group { same, own, session } group = Group::same;
    int terminal = -1;    ///< becomes the controlling terminal of its session
    int death_signal = 0; ///< sent to it when the thread that started it ends; 0: none
    std::vector<int> ignored_signals = {};
    std::optional<mode_t> file_mask = {}; ///< nullopt: that of this process
    /// Soft limits by RLIMIT_ number, each capped at the hard limit.
    std::vector<std::pair<int, rlim_t>> limits = {};
};

/// A process started by `spawn`, to be reaped by the caller.
struct Spawned {
    pid_t pid = -1;
    /// Reaches end of file without data once the program is executed; carries a SpawnFailure
    /// otherwise.
    Descriptor report;
};

/// Starts a process, without waiting for the exec, which takes as long as a disk hangs. `io` if no
/// process can be created. A child that can't execute its program exits with 127 if there is no
/// such file, else 126.
Result<Spawned> spawn(const Subprocess& plan);

struct SpawnFailure {
    enum class Step { change_directory, execute } step = Step::execute;
    int error = 0; ///< an errno value
};
/// Why the program was not executed; nullopt: it was. Blocks until that is known, unless the report
/// is non-blocking. Call once.
std::optional<SpawnFailure> failure_of(Spawned& process);

/// Starts a process that need not be reaped: it is a child of another process, which belongs to
/// init, waits for it and kills its process group, in a session of its own, at the limit. Does not
/// wait for the exec, and does not report whether it succeeds. `io` if no process can be created.
Result<void> spawn_unattended(Subprocess plan, std::chrono::milliseconds limit);

/// The exit status in a wait status: 128+N for signal N.
int exit_code(int wait_status);
/// Waits for the end of a child. Returns its exit status.
int wait_for(pid_t pid);
/// The exit status of a child that has ended; nullopt while it runs.
std::optional<int> exit_code_if_ended(pid_t pid);
/// Ends a child, with its process group if it has one of its own: by TERM and, after `patience`, by
/// KILL. Returns its exit status; nullopt for one that not even KILL ends within a second, because
/// the kernel waits for a file system: it is left behind.
std::optional<int> end_in(pid_t pid, std::chrono::milliseconds patience);
/// Kills a child with its process group, if it has one of its own, and reaps it.
void kill_and_reap(pid_t pid);

/// What `run` collects.
struct Capture {
    enum class Streams {
        none,     ///< both streams are those of the plan
        output,   ///< stdout; stderr is that of the plan
        together, ///< both, in Finished::out
        apart,
    } streams = Streams::together;
    std::size_t most = std::string::npos; ///< bytes per stream: the last ones are kept
    std::optional<std::chrono::milliseconds> limit = {}; ///< nullopt: none
    /// If it returns true for the output so far, the process is killed.
    std::function<bool(const std::string& out, const std::string& err)> enough = {};
};

struct Finished {
    int status = 0;      ///< 128+N for signal N
    int signal = 0;      ///< that ended it; 0: it has exited, perhaps with a status above 128
    int error = 0;       ///< not 0: why the program was not executed, an errno value
    bool in_time = true; ///< false: killed at the limit
    std::string out, err;
};

/// Starts a process and waits for its end and that of its captured streams. At the limit the
/// process is killed, with its process group if the plan gives it one of its own. `io` if no
/// process can be created.
Result<Finished> run(Subprocess plan, const Capture& capture = {});

/// A file in memory with this content, to be read from its beginning: input of a child that cannot
/// block. `io`.
Result<Descriptor> file_in_memory(const std::string& content);

} // namespace gpuq
