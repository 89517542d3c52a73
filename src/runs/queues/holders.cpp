// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/holders.h"

#include <algorithm>

namespace gpuq {

Holders::Holders(const NodeResources& nodes)
    : m_scratch(nodes)
    , m_on_node(nodes.size())
    , m_changes(nodes.size(), 1)
{
}

std::uint32_t Holders::add(const std::vector<Part>& parts, double limit_end)
{
    const auto number = static_cast<std::uint32_t>(m_holders.size());
    m_holders.push_back({static_cast<std::uint32_t>(m_parts.size()),
                         static_cast<std::uint32_t>(parts.size()), limit_end});
    m_parts.insert(m_parts.end(), parts.begin(), parts.end());
    for (const Part& part : parts) {
        ++m_changes[part.node];
        if (m_on_node[part.node].empty() || m_on_node[part.node].back() != number) {
            m_on_node[part.node].push_back(number);
        }
    }
    return number;
}

void Holders::release(std::uint32_t number, NodeResources& nodes)
{
    const Holder& holder = m_holders[number];
    for (std::uint32_t i = 0; i < holder.count; ++i) {
        const Part& part = m_parts[holder.first + i];
        nodes.give(part);
        ++m_changes[part.node];
        std::erase(m_on_node[part.node], number);
    }
}

Holders::Rooms::Rooms(Holders& holders, Table& table, const Need& need)
    : m_holders(holders)
    , m_table(table)
    , m_need(need)
{
}

double Holders::Rooms::from(Node node, const NodeResources& nodes) const
{
    Room& room = m_table.by_node[node];
    if (room.changes != m_holders.m_changes[node]) {
        room = {m_holders.m_changes[node], m_holders.room_from(node, m_need, nodes)};
    }
    return room.from;
}

Holders::Rooms Holders::rooms_for(std::size_t request, const Need& need)
{
    auto table = std::find_if(m_tables.begin(), m_tables.end(),
                              [&](const Table& one) { return one.request == request; });
    if (table == m_tables.end()) {
        table = m_tables.begin() + static_cast<std::ptrdiff_t>(m_replaced++ % m_tables.size());
        table->request = request;
        table->by_node.assign(m_on_node.size(), {});
    }
    return {*this, *table, need};
}

double Holders::room_from(Node node, const Need& need, const NodeResources& nodes)
{
    m_unused.clear();
    if (!nodes.could_fit(node, need, m_unused)) {
        return k_never;
    }
    m_scratch.copy_node(nodes, node);
    m_here = m_on_node[node];
    std::sort(m_here.begin(), m_here.end(), [&](std::uint32_t one, std::uint32_t other) {
        return m_holders[one].limit_end < m_holders[other].limit_end;
    });
    double from = -k_never;
    for (auto next = m_here.begin(); !m_scratch.fit(node, need, m_unused); ++next) {
        if (next == m_here.end()) {
            return k_never;
        }
        const Holder& holder = m_holders[*next];
        for (std::uint32_t i = 0; i < holder.count; ++i) {
            if (m_parts[holder.first + i].node == node) {
                m_scratch.give(m_parts[holder.first + i]);
            }
        }
        from = holder.limit_end;
    }
    return from;
}

} // namespace gpuq
