// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/backlog.h"

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_limit = 4 << 20;
constexpr std::size_t k_recent = 512 << 10;
/// Memory for a chunk in addition to its bytes; a program may write one byte at a time.
constexpr std::size_t k_overhead = 128;

std::size_t cost(const Chunk& chunk)
{
    return chunk.bytes.size() + k_overhead;
}

} // namespace

void Backlog::append(Stream stream, std::string_view bytes)
{
    const std::lock_guard lock(m_mutex);
    std::uint64_t& end = m_end[index_of(stream)];
    m_chunks.push_back({stream, end, std::string(bytes), false});
    m_cost += cost(m_chunks.back());
    end += bytes.size();
    ++m_last;
}

bool Backlog::full() const
{
    // Only the loop changes the cost.
    return m_cost >= k_limit;
}

void Backlog::trim(std::uint64_t needed)
{
    const std::lock_guard lock(m_mutex);
    while (m_first < m_next_to_log && m_cost > k_recent) {
        const Chunk& oldest = m_chunks.front();
        if (oldest.lost && m_first >= needed) {
            return;
        }
        m_begin[index_of(oldest.stream)] = oldest.end();
        m_cost -= cost(oldest);
        m_chunks.pop_front();
        ++m_first;
    }
}

const Chunk* Backlog::to_log() const
{
    const std::lock_guard lock(m_mutex);
    return m_next_to_log < m_last ? &m_chunks[m_next_to_log - m_first] : nullptr;
}

void Backlog::logged(bool lost)
{
    const std::lock_guard lock(m_mutex);
    m_chunks[m_next_to_log - m_first].lost = lost;
    ++m_next_to_log;
}

} // namespace gpuq::supervisor
