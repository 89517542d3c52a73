// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "wire/frame.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// The program's input between the client's stdin and the supervisor: keeps what the supervisor
/// has not yet taken, so that a change of connection loses and doubles nothing.
class InputBuffer {
public:
    /// True when more should be read from stdin.
    bool wants_more() const;
    void add(std::string_view bytes);
    /// Stdin is at its end.
    void close() { m_closed = true; }
    bool closed() const { return m_closed; }
    /// How many bytes were added.
    std::uint64_t added() const { return m_end; }
    /// Everything, the end included, is in the supervisor's hands.
    bool all_taken() const { return m_closed && m_taken == m_end && m_end_taken; }

    /// What the supervisor said: it has the bytes up to `taken.offset`.
    void taken(const wire::StdinTaken& taken);
    /// A new connection: what has not been taken is to be sent again.
    void restart();
    /// The frames to send now, within the room that the supervisor gave.
    std::vector<wire::Frame> to_send();

private:
    std::string m_kept; ///< bytes from m_taken to m_end
    std::uint64_t m_taken = 0;
    std::uint64_t m_sent = 0;
    std::uint64_t m_end = 0;
    std::uint64_t m_limit = wire::k_piece; ///< offset up to which there is room
    bool m_closed = false;
    bool m_end_sent = false;
    bool m_end_taken = false;
};

} // namespace gpuq
