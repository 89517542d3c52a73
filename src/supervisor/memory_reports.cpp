// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/memory_reports.h"

#include <algorithm>

namespace gpuq::supervisor {

bool MemoryReports::is_due(Steady now, std::chrono::milliseconds period)
{
    if (now < m_next_check) {
        return false;
    }
    m_next_check = now + period;
    return true;
}

std::vector<MemoryReports::NodeKills> MemoryReports::update(const std::string& node,
                                                            const MemoryCounts& now,
                                                            const std::optional<RankNotes>& notes)
{
    m_watch.add(now);
    std::vector<NodeKills> all{{node, take_new(node, m_watch.all())}};
    if (notes) {
        for (const auto& [other, kills] : notes->memory) {
            all.push_back({other, take_new(other, kills)});
        }
    }
    std::erase_if(all, [](const NodeKills& each) { return each.kills == MemoryKills{}; });
    return all;
}

MemoryKills MemoryReports::take_new(const std::string& node, const MemoryKills& kills)
{
    MemoryKills& reported = m_reported[node];
    const MemoryKills fresh{kills.ours - std::min(kills.ours, reported.ours),
                            kills.nearby - std::min(kills.nearby, reported.nearby)};
    for (MemoryKills* sum : {&reported, &m_all}) {
        sum->ours += fresh.ours;
        sum->nearby += fresh.nearby;
    }
    return fresh;
}

} // namespace gpuq::supervisor
