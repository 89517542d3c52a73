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

/// A position in the two streams.
using Position = std::array<std::uint64_t, 2>; ///< by index_of(Stream)

constexpr std::size_t index_of(Stream stream)
{
    return static_cast<std::size_t>(stream);
}

/// One piece of output, as read from the program.
struct Chunk {
    Stream stream = Stream::out;
    std::uint64_t offset = 0; ///< offset of its first byte in the stream
    std::string bytes;
    bool lost = false; ///< missing from the log

    std::uint64_t end() const { return offset + bytes.size(); }
};

/// The output held in memory, in the order in which the program wrote it: everything that is not in
/// the log yet, and the newest logged output, so that clients that keep up never cause a read.
///
/// Two threads use it: the loop appends, reads and trims; the log writer takes the next chunk for
/// the log. A chunk does not move or change between append and trim. Only the loop trims, and only
/// chunks that the log writer is done with.
class Backlog {
public:
    // For the loop.
    void append(Stream stream, std::string_view bytes);
    /// True if nothing should be appended for now: the log writer is behind, or lost bytes are kept
    /// for a client that is about to receive them.
    bool full() const;
    /// Numbers of the chunks in memory: [first, last).
    std::uint64_t first() const { return m_first; }
    std::uint64_t last() const { return m_last; }
    const Chunk& at(std::uint64_t number) const { return m_chunks[number - m_first]; }
    /// Where the chunks in memory begin; everything before is in the log or lost.
    const Position& begin() const { return m_begin; }
    const Position& end() const { return m_end; }
    /// Removes old chunks. Lost chunks numbered `needed` or higher are kept.
    void trim(std::uint64_t needed);

    // For the log writer.
    /// The next chunk for the log, or nullptr.
    const Chunk* to_log() const;
    /// Marks that chunk as logged, or as missing from the log.
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
