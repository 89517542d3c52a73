// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "wire/frame.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Buffers the program's input between the client's stdin and the supervisor. Keeps the bytes that
/// the supervisor has not yet acknowledged, so that a change of connection neither loses nor
/// repeats input.
class InputBuffer {
public:
    /// True if more should be read from stdin.
    bool wants_more() const;
    void add(std::string_view bytes);
    /// Marks the end of stdin.
    void close() { m_closed = true; }
    bool closed() const { return m_closed; }
    /// The number of bytes added.
    std::uint64_t added() const { return m_end; }
    /// True if the supervisor has acknowledged everything, including the end.
    bool all_taken() const { return m_closed && m_taken == m_end && m_end_taken; }

    /// Processes an acknowledgement: the supervisor has the bytes up to `taken.offset`.
    void taken(const wire::StdinTaken& taken);
    /// For a new connection: bytes not yet acknowledged are sent again.
    void restart();
    /// The frames to send now, within the window that the supervisor granted.
    std::vector<wire::Frame> to_send();

private:
    std::string m_kept; ///< bytes from m_taken to m_end
    std::uint64_t m_taken = 0;
    std::uint64_t m_sent = 0;
    std::uint64_t m_end = 0;
    std::uint64_t m_limit = wire::k_piece; ///< end of the window
    bool m_closed = false;
    bool m_end_sent = false;
    bool m_end_taken = false;
};

} // namespace gpuq
