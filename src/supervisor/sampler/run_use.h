// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::supervisor {

/// The cgroups in which the kernel counts for this process's job: those above its step's in
/// /proc/self/cgroup. A field is empty if the process is in no step's cgroup.
struct JobCgroup {
    std::string unified;                ///< version 2: a directory
    std::string cpu, memory, transfers; ///< version 1
};
JobCgroup job_cgroup(std::string_view proc_self_cgroup);

/// Parse the texts of the kernel's files.
std::optional<std::uint64_t> value_after(std::string_view text, std::string_view name);
/// Sums over all disks in io.stat (version 2) or blkio.throttle.io_service_bytes (version 1).
std::optional<std::uint64_t> io_stat_sum(std::string_view text, std::string_view name);
/// Bytes received or sent according to /proc/net/dev, on all interfaces except the loopback.
std::optional<std::uint64_t> net_sum(std::string_view text, bool sent);

/// A job's use of its node apart from GPUs: measured by its cgroup or, if it has none, by its
/// processes, those below `root`.
class RunUse {
public:
    explicit RunUse(pid_t root);
    RunSample measure(std::chrono::steady_clock::time_point now);

private:
    void by_cgroup(RunSample& sample) const;
    void by_processes(RunSample& sample, std::chrono::steady_clock::time_point now);

    pid_t m_root;
    JobCgroup m_cgroup;
    std::optional<RunSample> m_of_processes;
    std::chrono::steady_clock::time_point m_checked_at;
};

} // namespace gpuq::supervisor
