// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/link_log.h"

#include "core/layout.h"
#include "core/number.h"
#include "runs/records/journal.h"

#include <algorithm>
#include <limits>

namespace gpuq {
namespace {

constexpr std::size_t k_piece = 128 << 10;
constexpr std::size_t k_order_piece = 32 << 10;
/// Longer lines are not valid in `order`.
constexpr std::size_t k_longest_order_line = 64;
constexpr std::size_t k_page = 4096;
constexpr std::uint64_t k_no_limit = std::numeric_limits<std::uint64_t>::max();
constexpr Stream k_streams[] = {Stream::out, Stream::err};

/// A missing file counts as empty.
Result<std::uint64_t> size_of(Store& store, const std::string& path)
{
    auto size = store.size(path);
    if (!size && size.error().kind == Error::Kind::missing) {
        return std::uint64_t{0};
    }
    return size;
}

struct Segment {
    Stream stream;
    std::uint64_t bytes;
};

std::optional<Segment> parse_segment(std::string_view line)
{
    if (line.size() < 3 || (line[0] != 'o' && line[0] != 'e') || line[1] != ' ') {
        return std::nullopt;
    }
    const auto bytes = whole_number(line.substr(2));
    if (!bytes) {
        return std::nullopt;
    }
    return Segment{line[0] == 'o' ? Stream::out : Stream::err, *bytes};
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b)
{
    return a > k_no_limit - b ? k_no_limit : a + b;
}

} // namespace

LinkLog::LinkLog(Store& store, RunKey key, LinkNumber link)
    : m_store(store)
    , m_key(std::move(key))
    , m_link(link)
{
    for (const Stream stream : k_streams) {
        source(stream).path = layout::log(m_key, m_link, stream);
    }
}

Result<log::Item> LinkLog::next(Writer writer, Steady now)
{
    for (const bool fresh : {false, true}) {
        if (fresh) {
            TRY(refresh());
        }
        m_held_back = false;
        TRY_ASSIGN(auto item, known(writer, now));
        if (item) {
            return *std::move(item);
        }
    }
    if (auto item = cut_file(writer, now)) {
        return *std::move(item);
    }
    if (m_held_back || writer == Writer::alive) {
        return log::Item(log::Wait{m_held_back});
    }
    return log::Item(log::End{});
}

/// Reads the sizes first: `order` and the journal, read after them, then describe all of these
/// bytes.
Result<void> LinkLog::refresh()
{
    for (const Stream stream : k_streams) {
        TRY_ASSIGN(source(stream).size, size_of(m_store, source(stream).path));
    }
    return read_journal();
}

Result<void> LinkLog::read_journal()
{
    const std::string path = layout::journal(m_key, m_link);
    TRY_ASSIGN(const std::uint64_t size, size_of(m_store, path));
    if (size == m_journal_size) {
        return {};
    }
    TRY_ASSIGN(const std::string bytes, m_store.read(path));
    m_journal_size = bytes.size();
    for (const Stream stream : k_streams) {
        source(stream).lost.clear();
    }
    for (const Event& event : parse_journal(bytes)) {
        if (event.kind == Event::Kind::log_lost && event.stream && event.from && event.to) {
            source(*event.stream).lost.emplace_back(*event.from, *event.to);
        }
    }
    for (const Stream stream : k_streams) {
        std::sort(source(stream).lost.begin(), source(stream).lost.end());
    }
    return {};
}

/// True if `order` had more bytes.
Result<bool> LinkLog::read_order()
{
    const auto bytes = m_store.read_at(layout::order(m_key, m_link), m_order_at, k_order_piece);
    if (!bytes && bytes.error().kind != Error::Kind::missing) {
        return bytes.error();
    }
    if (!bytes || bytes->empty()) {
        return false;
    }
    m_order_at += bytes->size();
    // Keep only as much of an unfinished line as a valid line can hold.
    m_order.erase(0,
                  m_order.size() - std::min(m_order.size() - m_order_used, k_longest_order_line));
    m_order_used = 0;
    m_order += *bytes;
    return true;
}

/// Moves to the next segment in `order`. An invalid line is skipped: the bytes that it should have
/// described are returned by tail().
Result<bool> LinkLog::next_segment()
{
    while (true) {
        const std::size_t end = m_order.find('\n', m_order_used);
        if (end == std::string::npos) {
            TRY_ASSIGN(const bool more, read_order());
            if (!more) {
                return false;
            }
            continue;
        }
        const auto line = std::string_view(m_order).substr(m_order_used, end - m_order_used);
        m_order_used = end + 1;
        if (const auto segment = parse_segment(line)) {
            Source& from = source(segment->stream);
            from.reported = sum(from.reported, segment->bytes);
            m_segment = segment->stream;
            return true;
        }
    }
}

/// The next item that the files as last read allow.
Result<std::optional<log::Item>> LinkLog::known(Writer writer, Steady now)
{
    while (true) {
        if (m_segment && source(*m_segment).position >= source(*m_segment).reported) {
            m_segment.reset();
        }
        if (!m_segment) {
            TRY_ASSIGN(const bool found, next_segment());
            if (!found) {
                return tail(writer, now);
            }
            continue;
        }
        Source& from = source(*m_segment);
        TRY_ASSIGN(auto item, take(*m_segment, from.reported, writer, now));
        if (item || m_held_back) {
            return item;
        }
        if (from.position >= from.reported) {
            continue; // skipped
        }
        // `order` describes bytes that are missing from the log and not recorded as lost. A
        // living writer has written them, so they will become visible.
        m_held_back = writer == Writer::alive || !patience_is_over(now);
        if (m_held_back) {
            return std::optional<log::Item>();
        }
        const std::uint64_t missing = from.reported - from.position;
        from.position = from.reported;
        from.was_cut = true; // or never grew: this gap reports it
        return std::optional<log::Item>(log::Gap{*m_segment, missing});
    }
}

/// Returns bytes beyond those that `order` describes.
Result<std::optional<log::Item>> LinkLog::tail(Writer writer, Steady now)
{
    const auto has_more = [](const Source& from) { return from.size > from.position; };
    const bool out = has_more(source(Stream::out));
    const bool both = out && has_more(source(Stream::err));
    if (both && !patience_is_over(now)) {
        m_held_back = true;
        return std::optional<log::Item>();
    }
    if (!both) {
        m_inconsistent_since.reset();
    }
    for (const Stream stream : k_streams) {
        TRY_ASSIGN(auto item, take(stream, k_no_limit, writer, now));
        if (item || m_held_back) {
            return item;
        }
    }
    return std::optional<log::Item>();
}

/// Returns bytes of one stream up to `limit`, or the gap at this position.
Result<std::optional<log::Item>> LinkLog::take(Stream stream, std::uint64_t limit, Writer writer,
                                               Steady now)
{
    Source& from = source(stream);
    std::uint64_t end = std::min(limit, from.size);
    for (const auto& [begin, past] : from.lost) {
        if (from.position >= begin && from.position < past) {
            const std::uint64_t to = std::min(past, limit);
            const std::uint64_t missing = to - from.position;
            from.position = to;
            return std::optional<log::Item>(log::Gap{stream, missing});
        }
        if (begin > from.position) {
            end = std::min(end, begin);
        }
    }
    if (end <= from.position) {
        return std::optional<log::Item>();
    }
    if (m_to_pass > 0) {
        const std::uint64_t passed = std::min(m_to_pass, end - from.position);
        m_to_pass -= passed;
        from.position += passed;
        return take(stream, limit, writer, now);
    }
    TRY_ASSIGN(std::string_view bytes, bytes_at(from, end));
    if (writer == Writer::alive) {
        bytes = bytes.substr(0, settled_part(from, bytes, now));
    }
    if (bytes.empty()) {
        return std::optional<log::Item>();
    }
    from.position += bytes.size();
    // Usually this is the whole buffer: moving it avoids copying every byte of a long log.
    return std::optional<log::Item>(log::Output{stream, bytes.size() == from.buffer.size()
                                                            ? std::exchange(from.buffer, {})
                                                            : std::string(bytes)});
}

/// Bytes from the position up to `end`, read through the buffer.
Result<std::string_view> LinkLog::bytes_at(Source& from, std::uint64_t end)
{
    const std::uint64_t buffered = from.buffer_at + from.buffer.size();
    if (from.position < from.buffer_at || from.position >= buffered) {
        const std::uint64_t size = std::min<std::uint64_t>(from.size - from.position, k_piece);
        TRY_ASSIGN(from.buffer, m_store.read_at(from.path, from.position, size));
        from.buffer_at = from.position;
    }
    return std::string_view(from.buffer)
        .substr(from.position - from.buffer_at, end - from.position);
}

/// How many of `bytes` can be returned. On NFS the pages of a file arrive in any order, and a
/// missing page reads as zeros: a page that ends in zeros and is not the last one is read again
/// after a moment.
std::size_t LinkLog::settled_part(Source& from, std::string_view bytes, Steady now)
{
    for (std::size_t at = 0; at < bytes.size();) {
        const std::uint64_t offset = from.position + at;
        const std::size_t page =
            std::min(k_page - static_cast<std::size_t>(offset % k_page), bytes.size() - at);
        const std::string_view part = bytes.substr(at, page);
        const bool is_last = offset + page >= from.size; // nothing came after it: not a hole
        if (is_last || offset + page <= from.trusted || part.back() != '\0') {
            at += page;
            continue;
        }
        if (m_settling_since && now - *m_settling_since >= k_settling) {
            m_settling_since.reset();
            from.trusted = from.size;
            continue;
        }
        m_settling_since = m_settling_since.value_or(now);
        from.buffer.resize(offset - from.buffer_at);
        m_held_back = at == 0;
        return at;
    }
    m_settling_since.reset();
    return bytes.size();
}

std::optional<log::Item> LinkLog::cut_file(Writer writer, Steady now)
{
    for (const Stream stream : k_streams) {
        Source& from = source(stream);
        if (from.size >= from.position || !from.lost.empty() || from.was_cut) {
            from.short_since.reset();
            continue;
        }
        from.short_since = from.short_since.value_or(now);
        if (writer == Writer::gone || now - *from.short_since >= k_patience) {
            from.was_cut = true;
            return log::Cut{stream};
        }
    }
    return std::nullopt;
}

bool LinkLog::patience_is_over(Steady now)
{
    m_inconsistent_since = m_inconsistent_since.value_or(now);
    return now - *m_inconsistent_since >= k_patience;
}

} // namespace gpuq
