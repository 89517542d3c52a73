// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// A place in the two streams.
using Position = std::array<std::uint64_t, 2>; ///< by index_of(Stream)

constexpr std::size_t index_of(Stream stream)
{
    return static_cast<std::size_t>(stream);
}

/// One piece of output, as read from the program.
struct Chunk {
    Stream stream = Stream::out;
    std::uint64_t offset = 0; ///< of its first byte in its stream
    std::string bytes;
    bool lost = false; ///< the log does not have it

    std::uint64_t end() const { return offset + bytes.size(); }
};

/// The output that is held in memory, in the program's order: all that is not in the log yet, and
/// the newest of what is, so that clients that keep up never cost a read.
///
/// Two threads: the loop appends, reads and trims; the log writer takes what is next for the log.
/// A chunk stays where it is, unchanged, from append to trim; only the loop trims, and only what
/// the log writer has done with.
class Backlog {
public:
    // The loop.
    void append(Stream stream, std::string_view bytes);
    /// No more is to be appended for now: the log writer is behind, or lost bytes are
    /// kept for a client that is about to take them.
    bool full() const;
    /// Numbers of the chunks in memory: [first, last).
    std::uint64_t first() const { return m_first; }
    std::uint64_t last() const { return m_last; }
    const Chunk& at(std::uint64_t number) const { return m_chunks[number - m_first]; }
    /// Where the chunks in memory begin; all before is in the log or lost.
    const Position& begin() const { return m_begin; }
    const Position& end() const { return m_end; }
    /// Lets go of old chunks. Lost ones from `needed` on are kept for as long as there is room.
    void trim(std::uint64_t needed);

    // The log writer.
    /// The next chunk for the log; nullptr when there is none.
    const Chunk* to_log() const;
    /// It is in the log, or lost for it.
    void logged(bool lost);

private:
    mutable std::mutex m_mutex;
    std::deque<Chunk> m_chunks;
    std::uint64_t m_first = 0, m_last = 0;
    std::uint64_t m_next_to_log = 0;
    std::size_t m_cost = 0; ///< of all chunks
    Position m_begin{}, m_end{};
};

} // namespace gpuq::supervisor
