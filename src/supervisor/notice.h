// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

/// Selects the processes that are notified by a signal that the link is about to end. Only
/// processes that handle the signal are selected, because others would die from it; and of these
/// only the innermost, because launchers (torchrun, conda run, a shell) respond to a signal by
/// ending the processes they started.
namespace gpuq::supervisor {

struct Listener {
    pid_t pid = 0;
    pid_t parent = 0;
    std::uint64_t caught = 0; ///< SigCgt in proc(5)
    std::string executable;
    std::string command_line; ///< arguments, each terminated by NUL
    std::string image;        ///< auxv in proc(5): changed by each exec, inherited by a fork
};

/// The processes among `all` that should get `signal`.
///
/// A child that was forked without an exec, such as a DataLoader worker, or that belongs to
/// Python's multiprocessing, may have its handler from its parent's code. It is notified only if no
/// process above it, up to the one that started these children, handles the signal. Such children
/// never get TERM, because PyTorch gives its workers a handler that ends them. A process below
/// another one of the same program, such as a rank started by Lightning, does not make the other
/// one a launcher.
///
/// Never notified: programs that forward signals to everything below them, handled or not (srun,
/// mpirun); programs that respond to any signal by ending their children (torchrun); and programs
/// that catch the signal for purposes of their own: Go's runtime, which catches all of them, and
/// bash with a trap on EXIT, which dies from it.
std::vector<pid_t> processes_to_notify(const std::vector<Listener>& all, int signal);

/// The signals for a notice, in order of preference: the first one with a handler is sent.
std::vector<int> signals_of(Notice notice);

/// All processes of the calling process's program on this node: its descendants, except those in
/// `spared` and their descendants, and all processes started with `variable` (NAME=VALUE), wherever
/// they are in the process tree. Excludes supervisors and processes that Slurm started on another
/// node than `node`: two slurmds may share a machine.
std::vector<Listener> listeners(const std::string& variable, const std::string& node,
                                const std::vector<pid_t>& spared);

/// Notifies the listeners among `all`, each once; returns the notified ones.
std::vector<pid_t> notify_processes(const std::vector<Listener>& all, Notice notice);

} // namespace gpuq::supervisor
