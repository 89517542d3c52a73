// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/history.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_max_ranges = 4096;
constexpr std::size_t k_order_read = 64 << 10;

struct Segment {
    Stream stream = Stream::out;
    std::uint64_t size = 0;
};

/// Parses `o 1234`; nullopt for an invalid line.
std::optional<Segment> segment_in(std::string_view line)
{
    if (line.size() < 3 || (line[0] != 'o' && line[0] != 'e') || line[1] != ' ') {
        return std::nullopt;
    }
    Segment segment{line[0] == 'o' ? Stream::out : Stream::err, 0};
    const auto read = std::from_chars(line.data() + 2, line.data() + line.size(), segment.size);
    return read.ec == std::errc() ? std::optional(segment) : std::nullopt;
}

class Reader {
public:
    Reader(const LogFiles& files, Bookmark& bookmark, const Position& end, std::size_t size)
        : m_files(files)
        , m_bookmark(bookmark)
        , m_end(end)
        , m_room(size)
    {
    }

    std::vector<Piece> read()
    {
        if (!read_segments()) {
            // The current segment, which `order` does not contain yet. Or the end is within a
            // segment: the other stream has nothing left before it, unless `order` was compacted
            // (log_index.cpp).
            take(Stream::out, m_end[0]);
            take(Stream::err, m_end[1]);
        }
        return std::move(m_pieces);
    }

private:
    /// False if the recorded segments are used up, or the next one could not be taken whole.
    bool read_segments()
    {
        std::string text(k_order_read, '\0');
        const ssize_t got = m_files.order < 0
                                ? 0
                                : ::pread(m_files.order, text.data(), text.size(),
                                          static_cast<off_t>(m_bookmark.order_offset));
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        std::size_t from = 0;
        while (true) {
            const std::size_t end = text.find('\n', from);
            if (end == std::string::npos) {
                return from > 0;
            }
            const auto segment = segment_in(std::string_view(text).substr(from, end - from));
            if (segment && !take_segment(*segment)) {
                return false;
            }
            from = end + 1;
            advance(segment, from);
        }
    }

    void advance(const std::optional<Segment>& segment, std::size_t from)
    {
        if (segment) {
            m_bookmark.segments[index_of(segment->stream)] += segment->size;
        }
        m_bookmark.order_offset += from - m_consumed;
        m_consumed = from;
    }

    /// False if the whole segment did not fit into the size limit, or reaches beyond the end.
    bool take_segment(const Segment& segment)
    {
        const std::size_t index = index_of(segment.stream);
        const std::uint64_t end = m_bookmark.segments[index] + segment.size;
        take(segment.stream, std::min(end, m_end[index]));
        return m_bookmark.at[index] >= end;
    }

    /// Reads up to `end` of a stream, within the size limit.
    void take(Stream stream, std::uint64_t end)
    {
        const std::size_t index = index_of(stream);
        const Ranges& lost = *m_files.lost[index];
        std::uint64_t& at = m_bookmark.at[index];
        while (at < end && m_room > 0) {
            at = std::min(lost.past(at), end);
            const std::uint64_t until = std::min(end, lost.next(at));
            if (at < until && !take_piece(stream, until)) {
                // The bytes are missing: the file was truncated, or an error occurred.
                at = until;
            }
        }
    }

    bool take_piece(Stream stream, std::uint64_t until)
    {
        std::uint64_t& at = m_bookmark.at[index_of(stream)];
        Piece piece{stream, at, std::string(std::min<std::uint64_t>(until - at, m_room), '\0')};
        const ssize_t got = ::pread(m_files.logs[index_of(stream)], piece.bytes.data(),
                                    piece.bytes.size(), static_cast<off_t>(at));
        if (got <= 0) {
            return false;
        }
        piece.bytes.resize(static_cast<std::size_t>(got));
        at += piece.bytes.size();
        m_room -= piece.bytes.size();
        m_pieces.push_back(std::move(piece));
        return true;
    }

    const LogFiles& m_files;
    Bookmark& m_bookmark;
    const Position m_end;
    std::size_t m_room;
    std::size_t m_consumed = 0;
    std::vector<Piece> m_pieces;
};

} // namespace

void Ranges::add(std::uint64_t from, std::uint64_t to)
{
    if (!m_ranges.empty() && (m_ranges.back().second >= from || m_ranges.size() >= k_max_ranges)) {
        m_ranges.back().second = std::max(m_ranges.back().second, to);
    } else {
        m_ranges.emplace_back(from, to);
    }
}

std::uint64_t Ranges::past(std::uint64_t offset) const
{
    for (const auto& [from, to] : m_ranges) {
        if (from <= offset && offset < to) {
            return to;
        }
    }
    return offset;
}

std::uint64_t Ranges::next(std::uint64_t offset) const
{
    for (const auto& [from, to] : m_ranges) {
        if (from >= offset) {
            return from;
        }
    }
    return std::numeric_limits<std::uint64_t>::max();
}

std::vector<Piece> read_on(const LogFiles& files, Bookmark& bookmark, const Position& end,
                           std::size_t size)
{
    return Reader(files, bookmark, end, size).read();
}

} // namespace gpuq::supervisor
