// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "wire/frame.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// Writes the program's bytes to this process's stdout and stderr: each once, in order, unchanged.
/// Never blocks on a pipe or a terminal: writes a piece only when poll(2) has reported space.
class Printer {
public:
    /// Does not take ownership of `out` and `err`.
    Printer(int out, int err)
        : m_descriptors{out, err}
    {
    }

    /// Queues bytes of the program. Skips those already shown; returns how many bytes before this
    /// piece will never arrive (a gap in the stream), usually 0.
    std::uint64_t take(Stream stream, std::uint64_t offset, std::string_view bytes);

    /// The part of a piece of output that take() will queue: a new connection repeats bytes.
    std::string_view news(Stream stream, std::uint64_t offset, std::string_view bytes) const;

    /// Skips everything before `offset`; with wire::k_from_now, everything before the first piece.
    void begin_at(Stream stream, std::uint64_t offset) { m_wanted[index(stream)] = offset; }
    /// Queues bytes for stdout that are not part of the program's output.
    void show(std::string_view bytes);
    /// Offset of the first byte not yet written.
    std::uint64_t shown(Stream stream) const;

    /// Offset of the next byte wanted, for an Attach frame.
    std::uint64_t wanted(Stream stream) const { return m_wanted[index(stream)]; }

    /// True while so much is queued that no more should be read.
    bool full() const { return m_waiting > k_most_waiting; }
    bool empty() const { return m_pieces.empty(); }
    /// The descriptor that the next piece is for.
    int next_descriptor() const { return m_descriptors[index(m_pieces.front().stream)]; }
    /// Writes as much as possible without blocking. 0, or the errno of a permanent error.
    int write_some();
    /// False if the cursor is in the middle of a line.
    bool at_line_start() const { return m_last_byte == '\n'; }

private:
    static constexpr std::size_t k_most_waiting = 1 << 20;
    struct Piece {
        Stream stream;
        std::string bytes;
        std::size_t written = 0;
    };
    static std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }

    std::array<int, 2> m_descriptors;
    std::array<std::uint64_t, 2> m_wanted{0, 0};
    std::deque<Piece> m_pieces;
    std::size_t m_waiting = 0;
    char m_last_byte = '\n';
};

} // namespace gpuq::cli
