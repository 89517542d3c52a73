// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

/// Who is told by a signal that the link is about to end. Only a process that handles the signal,
/// for the others would die of it; of those the innermost: launchers (torchrun, conda run, a shell)
/// answer a signal by ending what they have started.
namespace gpuq::supervisor {

struct Listener {
    pid_t pid = 0;
    pid_t parent = 0;
    std::uint64_t caught = 0; ///< SigCgt of proc(5)
    std::string executable;
    std::string command_line; ///< words ended by NUL each
    std::string image;        ///< auxv of proc(5): of each exec another, a fork has its parent's
};

/// The processes among `all` that are to get `signal`.
///
/// A child that was forked without an exec, as DataLoader workers are, and one of Python's
/// multiprocessing may have its handler from its parent's code, and is told only when nobody
/// handles the signal above it, up to what started them. Of TERM such children are never told:
/// PyTorch gives its workers a handler to die by. A process below another one of the same program,
/// as the ranks that Lightning starts are, does not make that one a launcher.
///
/// Never told: what hands signals on to all below it, whether they handle them or not (srun,
/// mpirun), what answers each signal by ending them (torchrun), and what catches the signal for
/// ends of its own: Go's runtime, which catches all, and bash with a trap on EXIT, which dies of
/// it.
std::vector<pid_t> to_be_told(const std::vector<Listener>& all, int signal);

/// The signals for a notice, the first that anybody handles is sent.
std::vector<int> signals_of(Notice notice);

/// All processes of the calling process's program on this node: what is below it, but for those in
/// `spared` and below them, and all that were started with `variable` (NAME=VALUE), wherever they
/// hang in the tree; supervisors excepted, and what Slurm has started on another node than `node`:
/// two slurmds may share a machine.
std::vector<Listener> listeners(const std::string& variable, const std::string& node,
                                const std::vector<pid_t>& spared);

/// Tells those of `all` that listen, each once; the told ones.
std::vector<pid_t> tell(const std::vector<Listener>& all, Notice notice);

} // namespace gpuq::supervisor
