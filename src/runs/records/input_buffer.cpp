// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/input_buffer.h"

#include <algorithm>

namespace gpuq {
namespace {

constexpr std::size_t k_most_kept = 4 * wire::k_piece;

} // namespace

bool InputBuffer::wants_more() const
{
    return !m_closed && m_kept.size() < k_most_kept;
}

void InputBuffer::add(std::string_view bytes)
{
    m_kept.append(bytes);
    m_end += bytes.size();
}

void InputBuffer::taken(const wire::StdinTaken& taken)
{
    if (taken.offset > m_end) {
        return; // acknowledges bytes that were never sent
    }
    if (taken.offset > m_taken) {
        m_kept.erase(0, taken.offset - m_taken);
        m_taken = taken.offset;
        m_sent = std::max(m_sent, m_taken);
    }
    m_limit = std::max(m_limit, taken.offset + taken.room);
    m_end_taken = m_end_taken || (m_end_sent && m_taken == m_end);
}

void InputBuffer::restart()
{
    m_sent = m_taken;
    m_end_sent = false;
}

std::vector<wire::Frame> InputBuffer::to_send()
{
    std::vector<wire::Frame> frames;
    const std::uint64_t limit = std::min(m_end, m_limit);
    while (m_sent < limit) {
        const std::size_t size = std::min<std::uint64_t>(limit - m_sent, wire::k_piece);
        frames.emplace_back(wire::Stdin{m_sent, m_kept.substr(m_sent - m_taken, size)});
        m_sent += size;
    }
    if (m_closed && m_sent == m_end && !m_end_sent) {
        frames.emplace_back(wire::StdinEnd{m_end});
        m_end_sent = true;
    }
    return frames;
}

} // namespace gpuq
