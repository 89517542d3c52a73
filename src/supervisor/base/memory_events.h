// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The kernel's counts of processes killed for memory at one moment.
struct MemoryCounts {
    /// By cgroup of the job on this node; nullopt: Slurm has created no memory cgroup for the job.
    std::optional<std::map<std::string, std::uint64_t>> job;
    std::optional<std::uint64_t> node; ///< of the whole node, all users
};

/// Reads the counters of the calling process's job. Does not block.
MemoryCounts memory_counts();

/// Number of processes killed for memory.
struct MemoryKills {
    std::uint64_t ours = 0;   ///< of this job
    std::uint64_t nearby = 0; ///< on the node, if the job has no counter of its own: owner unknown
    bool operator==(const MemoryKills&) const = default;
};

/// Sums the increases of the counters since the object was made. In cgroup version 1 the count of a
/// removed cgroup is lost, for example that of a step that has ended; kills seen before stay
/// included.
class MemoryWatch {
public:
    explicit MemoryWatch(MemoryCounts start)
        : m_last(std::move(start))
    {
    }
    /// Returns the kills since the previous call or the start.
    MemoryKills add(const MemoryCounts& now);
    const MemoryKills& all() const { return m_all; }
    /// True if the job has its own counter, so that `all().ours` is exact.
    bool is_exact() const { return m_last.job.has_value(); }

private:
    MemoryCounts m_last;
    MemoryKills m_all;
};

/// The job's directory in the memory hierarchy, from the texts of /proc/self/cgroup and
/// /proc/self/mountinfo; nullopt if the process is in no cgroup of a Slurm job.
struct MemoryCgroup {
    std::string directory;
    bool hierarchical = false; ///< version 2: its counter includes the cgroups below it
    bool operator==(const MemoryCgroup&) const = default;
};
std::optional<MemoryCgroup> memory_cgroup(std::string_view proc_self_cgroup,
                                          std::string_view mountinfo);

/// Parses the number after `oom_kill` in a counter file.
std::optional<std::uint64_t> kills_in(std::string_view text);

} // namespace gpuq::supervisor
