// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "remote/backlog.h"
#include "remote/channel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// Input of a session on its way to the host, kept until the host has confirmed it.
class ClientInput {
public:
    explicit ClientInput(bool has_input)
        : m_over(!has_input)
    {
    }
    /// Begins the input of the session that replaces one that is lost.
    void restart(bool has_input) { *this = ClientInput(has_input); }

    void add(std::string_view bytes) { m_waiting.add(bytes); }
    void end() { m_over = true; }
    bool is_over() const { return m_over; }
    /// Bytes added since the session began.
    std::uint64_t added() const { return m_waiting.end(); }
    bool wants_more() const { return !m_over && m_waiting.size() < frames::k_input_room; }

    /// Continues on a new connection to a session that has taken this much and has this much room.
    /// False if less was sent.
    bool resume(std::uint64_t taken, std::uint64_t room)
    {
        m_end_sent = false;
        set_limit(taken, room);
        return m_waiting.send_from(taken) && m_waiting.confirm(taken);
    }
    /// The session has just been started.
    void begin(std::uint64_t taken, std::uint64_t room)
    {
        m_end_sent = false;
        set_limit(taken, room);
        (void)m_waiting.send_from(0);
    }
    /// False for bytes that were not sent.
    bool confirm(const frames::InputTaken& taken)
    {
        if (!m_waiting.confirm(taken.offset)) {
            return false;
        }
        set_limit(taken.offset, taken.room);
        return true;
    }
    /// Queues as much as the host has room for, then the end.
    void send(Channel& channel)
    {
        while (!m_waiting.all_sent() && m_waiting.sent() < m_limit && !channel.is_full()) {
            const std::uint64_t offset = m_waiting.sent();
            const auto most = std::min<std::uint64_t>(wire::k_piece, m_limit - offset);
            channel.send(frames::Input{offset, std::string(m_waiting.send(most))});
        }
        if (m_over && m_waiting.all_sent() && !m_end_sent) {
            m_end_sent = true;
            channel.send(frames::InputEnd{m_waiting.end()});
        }
    }

private:
    void set_limit(std::uint64_t taken, std::uint64_t room)
    {
        m_limit = taken + std::min(room, frames::k_input_room);
    }

    Backlog m_waiting;
    std::uint64_t m_limit = frames::k_input_room;
    bool m_over, m_end_sent = false;
};

/// Signals of a session for the verb. They are numbered, so that each is received once although
/// those that may have been lost with a connection are sent again.
class ClientSignals {
public:
    void add(int number) { m_all.push_back(number); }
    /// Discards those that the session had taken: the others are for the one that replaces it.
    void restart()
    {
        m_all.erase(m_all.begin(), m_all.begin() + static_cast<std::ptrdiff_t>(m_taken));
        m_sent = m_taken = 0;
    }
    /// Continues on a new connection to a session that has taken `count`. False if fewer were sent.
    bool resume(std::uint64_t count)
    {
        if (count > m_sent) {
            return false;
        }
        m_sent = m_taken = static_cast<std::size_t>(count);
        return true;
    }
    /// False if fewer were sent.
    bool confirm(std::uint64_t count)
    {
        m_taken =
            std::max(m_taken, static_cast<std::size_t>(std::min<std::uint64_t>(count, m_sent)));
        return count <= m_sent;
    }
    void send(Channel& channel)
    {
        while (m_sent < m_all.size()) {
            const int number = m_all[m_sent];
            channel.send(frames::Signal{number, ++m_sent});
        }
    }

private:
    std::vector<int> m_all;
    std::size_t m_sent = 0, m_taken = 0;
};

} // namespace gpuq::remote
