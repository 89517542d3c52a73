// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/backlog.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// Half-open ranges of a stream, merged where they touch.
class Ranges {
public:
    /// Ranges come in rising order. Beyond some thousand of them the last one just grows: it may
    /// then say too much, never too little.
    void add(std::uint64_t from, std::uint64_t to);
    /// The end of the range that holds `offset`, or `offset` itself.
    std::uint64_t past(std::uint64_t offset) const;
    /// Where the next range begins, seen from `offset`; the largest number when there is none.
    std::uint64_t next(std::uint64_t offset) const;

private:
    std::vector<std::pair<std::uint64_t, std::uint64_t>> m_ranges;
};

/// Where a reader of a log is: its place in the streams, and in the file `order`.
struct Bookmark {
    Position at{};
    std::uint64_t order_offset = 0; ///< of the next line of `order`
    Position segments{};            ///< sums of the lines before it
};

struct Piece {
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::string bytes;
};

/// The log as files.
struct LogFiles {
    std::array<int, 2> logs{-1, -1};
    int order = -1;
    std::array<const Ranges*, 2> lost{};
};

/// Reads on from `bookmark` in the program's order, up to about `size` bytes and not beyond `end`;
/// what is lost is stepped over. Empty with the bookmark short of `end`: only `order` was read,
/// call again. Blocking.
std::vector<Piece> read_on(const LogFiles& files, Bookmark& bookmark, const Position& end,
                           std::size_t size);

} // namespace gpuq::supervisor
