// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::supervisor {

/// Where the kernel counts for the job that this process belongs to: the cgroup above its step's,
/// as /proc/self/cgroup names it. Each empty when the process is in no step's cgroup.
struct JobCgroup {
    std::string unified;                ///< of version 2: a folder
    std::string cpu, memory, transfers; ///< of version 1
};
JobCgroup job_cgroup(std::string_view proc_self_cgroup);

/// Out of the texts of the kernel's files.
std::optional<std::uint64_t> value_after(std::string_view text, std::string_view name);
/// io.stat of version 2, blkio.throttle.io_service_bytes of version 1: sums over all disks.
std::optional<std::uint64_t> io_stat_sum(std::string_view text, std::string_view name);
/// /proc/net/dev: received or sent, of all interfaces but the loopback.
std::optional<std::uint64_t> net_sum(std::string_view text, bool sent);

/// What a job uses of its node besides GPUs. By its cgroup; where it has none, by its processes:
/// those below `root`.
class RunUse {
public:
    explicit RunUse(pid_t root);
    RunSample look(std::chrono::steady_clock::time_point now);

private:
    void by_cgroup(RunSample& sample) const;
    void by_processes(RunSample& sample, std::chrono::steady_clock::time_point now);

    pid_t m_root;
    JobCgroup m_cgroup;
    std::optional<RunSample> m_of_processes;
    std::chrono::steady_clock::time_point m_looked_at;
};

} // namespace gpuq::supervisor
