// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// How many processes the kernel has killed for memory, as it counts them at one moment.
struct MemoryCounts {
    /// By cgroup of the job on this node; nothing: Slurm has made no memory cgroup for the job.
    std::optional<std::map<std::string, std::uint64_t>> job;
    std::optional<std::uint64_t> node; ///< of the whole node, whoever they belong to
};

/// Reads the counters of the calling process's job. Does not block.
MemoryCounts memory_counts();

/// Processes that were killed for memory.
struct MemoryKills {
    std::uint64_t ours = 0;   ///< of this job
    std::uint64_t nearby = 0; ///< on the node of a job that nothing counts for: whose is not known
    bool operator==(const MemoryKills&) const = default;
};

/// What the counters have risen by since the object was made. Version 1 forgets the count of a
/// cgroup that is removed, such as that of a step which has ended: what was seen of it stays.
class MemoryWatch {
public:
    explicit MemoryWatch(MemoryCounts start)
        : m_last(std::move(start))
    {
    }
    /// The kills between the last call, or the start, and these counts.
    MemoryKills add(const MemoryCounts& now);
    const MemoryKills& all() const { return m_all; }
    /// The job's own processes are counted: `all().ours` is exact.
    bool is_exact() const { return m_last.job.has_value(); }

private:
    MemoryCounts m_last;
    MemoryKills m_all;
};

/// The job's directory in the memory hierarchy, out of the texts of /proc/self/cgroup and
/// /proc/self/mountinfo; nothing where the process is in no cgroup of a Slurm job.
struct MemoryCgroup {
    std::string directory;
    bool hierarchical = false; ///< version 2: its counter includes those below it
    bool operator==(const MemoryCgroup&) const = default;
};
std::optional<MemoryCgroup> memory_cgroup(std::string_view proc_self_cgroup,
                                          std::string_view mountinfo);

/// The number after `oom_kill` in a counter file.
std::optional<std::uint64_t> kills_in(std::string_view text);

} // namespace gpuq::supervisor
