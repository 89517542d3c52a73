// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/memory_events.h"
#include "supervisor/base/rank_notes.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// The processes of a link that were killed for memory, by node: on this node according to the
/// kernel's counters, on the others according to the notes of their ranks. Several ranks may have
/// counted on the same node, this one included.
class MemoryReports {
public:
    using Steady = std::chrono::steady_clock::time_point;

    explicit MemoryReports(MemoryCounts start)
        : m_watch(std::move(start))
    {
    }

    struct NodeKills {
        std::string node;
        MemoryKills kills;
    };
    /// True at the first call, and then every `period`.
    bool is_due(Steady now, std::chrono::milliseconds period);
    Steady next_check() const { return m_next_check; }
    /// The kills that no earlier call has returned.
    std::vector<NodeKills> update(const std::string& node, const MemoryCounts& now,
                                  const std::optional<RankNotes>& notes);
    /// The sum of all kills returned so far.
    const MemoryKills& all() const { return m_all; }
    /// True if the job has a counter of its own on this node.
    bool is_exact() const { return m_watch.is_exact(); }

private:
    MemoryKills take_new(const std::string& node, const MemoryKills& kills);

    MemoryWatch m_watch;
    std::map<std::string, MemoryKills> m_reported; ///< by node
    MemoryKills m_all;
    Steady m_next_check;
};

} // namespace gpuq::supervisor
