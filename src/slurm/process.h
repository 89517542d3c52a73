// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gpuq::slurm {

/// Data about a process from /proc.
struct ProcessFacts {
    char state = '?';
    int parent = 0;
    std::uint64_t born = 0; ///< start time in clock ticks since boot
};

/// nullopt if there is no such process.
std::optional<ProcessFacts> facts_of(int pid);

std::vector<int> children_of(int pid);

/// A handle to one process that is safe against pid reuse.
class HeldProcess {
public:
    /// Empty if `pid` has ended, or is a different process than the one born then.
    HeldProcess(int pid, std::uint64_t born);

    explicit operator bool() const { return m_pidfd.get() >= 0; }
    void signal(int number) const;
    /// Waits until the process is stopped by SIGSTOP, or has ended; at most one second.
    void wait_until_stopped() const;
    int pid() const { return m_pid; }

private:
    int m_pid;
    Descriptor m_pidfd;
};

} // namespace gpuq::slurm
