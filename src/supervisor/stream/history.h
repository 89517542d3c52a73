// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/stream/backlog.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// Half-open ranges of a stream; adjacent ranges are merged.
class Ranges {
public:
    /// Ranges must be added in ascending order. Beyond several thousand ranges the last one grows
    /// instead: the set may then be too large, but never too small.
    void add(std::uint64_t from, std::uint64_t to);
    /// The end of the range that contains `offset`, or `offset` itself.
    std::uint64_t past(std::uint64_t offset) const;
    /// The start of the next range at or after `offset`; the maximum value if there is none.
    std::uint64_t next(std::uint64_t offset) const;

private:
    std::vector<std::pair<std::uint64_t, std::uint64_t>> m_ranges;
};

/// A reader's position in a log: in the streams and in the file `order`.
struct Bookmark {
    Position at{};
    std::uint64_t order_offset = 0; ///< offset of the next line of `order`
    Position segments{};            ///< sums of the lines before it
};

struct Piece {
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::string bytes;
};

/// The open files of a log.
struct LogFiles {
    std::array<int, 2> logs{-1, -1};
    int order = -1;
    std::array<const Ranges*, 2> lost{};
};

/// Continues reading at `bookmark` in the program's order, up to about `size` bytes and not beyond
/// `end`; lost ranges are skipped. If the result is empty and the bookmark is short of `end`, only
/// `order` was read: call again. Blocking.
std::vector<Piece> read_on(const LogFiles& files, Bookmark& bookmark, const Position& end,
                           std::size_t size);

} // namespace gpuq::supervisor
