// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// How often the kernel has killed for memory, in this process's cgroup and on the whole node.
struct MemoryEvents {
    std::optional<std::uint64_t> own; ///< nothing: no memory cgroup of its own
    std::optional<std::uint64_t> node;
};

/// Reads the counters as they are now.
MemoryEvents memory_events();

/// True when something was killed in between: in the cgroup where there is one, else on the node.
bool killed_between(const MemoryEvents& before, const MemoryEvents& after);

/// The file of this process's cgroup that counts kills (version 1 or 2), out of the text of
/// /proc/self/cgroup.
std::optional<std::string> counter_file(std::string_view proc_self_cgroup);

/// The number after `oom_kill` in a counter file.
std::optional<std::uint64_t> kills_in(std::string_view text);

} // namespace gpuq::supervisor
