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
};

/// The processes among `all` that are to get `signal`.
///
/// A child that was forked without an exec, as DataLoader workers are, has its handlers from its
/// parent, and is told only when that does not handle the signal. Of TERM such children and those
/// of Python's multiprocessing are never told: PyTorch gives its workers a handler to die by. srun
/// hands signals on to all its tasks, whether they handle them or not, and is never told.
std::vector<pid_t> to_be_told(const std::vector<Listener>& all, int signal);

/// The signals for a notice, the first that anybody handles is sent.
std::vector<int> signals_of(Notice notice);

/// All processes of the calling process's program on this node: what is below it, but for those in
/// `spared` and below them, and all that were started with `variable` (NAME=VALUE), wherever they
/// hang in the tree; supervisors excepted.
std::vector<Listener> listeners(const std::string& variable, const std::vector<pid_t>& spared);

} // namespace gpuq::supervisor
