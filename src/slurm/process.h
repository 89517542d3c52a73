// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gpuq::slurm {

/// What /proc says of a process.
struct ProcessFacts {
    char state = '?';
    int parent = 0;
    std::uint64_t born = 0; ///< in the kernel's ticks since boot
};

/// Nothing when there is no such process.
std::optional<ProcessFacts> facts_of(int pid);

std::vector<int> children_of(int pid);

/// A hold on one process that is safe against the reuse of its number.
class HeldProcess {
public:
    /// Holds nothing when `pid` is gone, or is not the process born then.
    HeldProcess(int pid, std::uint64_t born);

    explicit operator bool() const { return m_pidfd.get() >= 0; }
    void signal(int number) const;
    /// Waits until SIGSTOP has taken effect on all its threads, or it is gone; a second at most.
    void wait_until_stopped() const;
    int pid() const { return m_pid; }

private:
    int m_pid;
    Descriptor m_pidfd;
};

} // namespace gpuq::slurm
