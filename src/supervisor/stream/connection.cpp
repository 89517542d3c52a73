// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/connection.h"

#include "supervisor/stream/server.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

/// Approximate amount of data prepared for a client at a time.
constexpr std::size_t k_batch = 64 << 10;
constexpr std::size_t k_read = 64 << 10;
constexpr std::uint64_t k_most_room = 1ULL << 40;

bool is_behind(const Position& at, const Position& begin)
{
    return at[0] < begin[0] || at[1] < begin[1];
}

} // namespace

Connection::Connection(int id, Descriptor socket, Clock::time_point now)
    : m_id(id)
    , m_input(std::move(socket))
    , m_since(now)
    , m_progress(now)
{
}

Connection::Connection(int id, Descriptor input, Descriptor output, Clock::time_point now)
    : m_id(id)
    , m_input(std::move(input))
    , m_output(std::move(output))
    , m_role(wire::Role::owner)
    , m_since(now)
    , m_progress(now)
{
}

void Connection::hold(Clock::time_point until, Clock::duration for_end)
{
    m_hold.until = until;
    m_hold.for_end = for_end;
}

ssize_t Connection::read(char* bytes, std::size_t size)
{
    if (m_output) {
        return ::read(m_input.get(), bytes, size);
    }
    std::optional<Streams> streams;
    const ssize_t count = read_with_streams(m_input.get(), bytes, size, streams);
    if (streams) {
        m_relay = std::exchange(m_input, std::move(streams->input));
        m_output = std::move(streams->output);
        set_nonblocking(m_input.get());
        set_nonblocking(m_output.get());
    }
    return count;
}

bool Connection::receive()
{
    char piece[k_read];
    const ssize_t size = read(piece, sizeof piece);
    if (size > 0) {
        m_decoder.feed(std::string_view(piece, static_cast<std::size_t>(size)));
        return true;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    m_input_ended = true;
    return false;
}

void Connection::attach(const wire::Attach& attach, const Backlog& backlog)
{
    m_role = attach.role;
    m_bookmark.at = {std::min(attach.out, backlog.end()[0]),
                     std::min(attach.err, backlog.end()[1])};
    m_next = backlog.first();
    m_in_history = attach.role != wire::Role::guard && is_behind(m_bookmark.at, backlog.begin());
}

bool Connection::transmit(const Backlog& backlog, Clock::time_point now)
{
    if (holds_back(backlog, now)) {
        return true;
    }
    while (true) {
        if (!has_unsent()) {
            m_batch.clear();
            m_sent = 0;
            fill(backlog);
            m_lacks_room = m_batch.empty() && room() == 0 && wants_output(backlog);
            m_progress = m_lacks_room ? m_progress : now;
        }
        if (m_batch.empty()) {
            return true;
        }
        if (!write_batch(now)) {
            return false;
        }
        if (has_unsent()) {
            return true;
        }
    }
}

bool Connection::write_batch(Clock::time_point now)
{
    const char* bytes = m_batch.data() + m_sent;
    const std::size_t size = m_batch.size() - m_sent;
    const ssize_t written = m_output ? ::write(m_output.get(), bytes, size)
                                     : ::send(m_input.get(), bytes, size, MSG_NOSIGNAL);
    if (written < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    m_sent += static_cast<std::size_t>(written);
    m_progress = now;
    return true;
}

bool Connection::holds_back(const Backlog& backlog, Clock::time_point now)
{
    if (m_hold.until && !m_hold.has_output && m_next < backlog.last()) {
        m_hold.has_output = true;
        m_hold.until = std::min(*m_hold.until, now + m_hold.for_end);
    }
    if (m_last || (m_hold.until && now >= *m_hold.until)) {
        m_hold.until.reset();
    }
    return m_hold.until.has_value();
}

void Connection::fill(const Backlog& backlog)
{
    m_batch = std::exchange(m_frames, {});
    if (m_role && *m_role != wire::Role::guard) {
        fill_from_pieces();
        if (m_pieces.empty()) {
            fill_from_memory(backlog);
        }
    } else {
        m_next = backlog.last();
    }
    if (m_last && !m_in_history && m_pieces.empty() && m_next == backlog.last()) {
        m_batch += *m_last;
        m_last.reset();
        m_last_sent = true;
    }
    if (!m_batch.empty()) {
        m_batch += wire::k_flush;
    }
}

bool Connection::wants_output(const Backlog& backlog) const
{
    return m_in_history || !m_pieces.empty() || m_next < backlog.last();
}

void Connection::taken(const wire::OutputTaken& taken, Clock::time_point now)
{
    // A client cannot have read more than it was sent.
    m_room_until = std::min(taken.bytes, m_output_sent) + std::min(taken.room, k_most_room);
    m_progress = now;
}

void Connection::fill_from_pieces()
{
    while (!m_pieces.empty() && m_batch.size() < k_batch && room() > 0) {
        Piece& piece = m_pieces.front();
        const std::size_t size = add_output(piece.stream, piece.offset, piece.bytes);
        piece.offset += size;
        piece.bytes.erase(0, size);
        if (piece.bytes.empty()) {
            m_pieces.erase(m_pieces.begin());
        }
    }
}

void Connection::fill_from_memory(const Backlog& backlog)
{
    if (!m_in_history && m_next < backlog.first()) {
        m_next = backlog.first();
        m_in_history = is_behind(m_bookmark.at, backlog.begin());
    }
    while (!m_in_history && m_next < backlog.last() && m_batch.size() < k_batch && room() > 0) {
        const Chunk& chunk = backlog.at(m_next);
        std::uint64_t& at = m_bookmark.at[index_of(chunk.stream)];
        if (at < chunk.end()) {
            const std::uint64_t from = std::max(at, chunk.offset);
            at = from + add_output(chunk.stream, from,
                                   std::string_view(chunk.bytes).substr(from - chunk.offset));
        }
        m_next += at >= chunk.end() ? 1 : 0;
    }
}

std::uint64_t Connection::room() const
{
    constexpr auto k_no_limit = std::numeric_limits<std::uint64_t>::max();
    if (!m_room_until) {
        return k_no_limit;
    }
    return *m_room_until > m_output_sent ? *m_room_until - m_output_sent : 0;
}

std::size_t Connection::add_output(Stream stream, std::uint64_t offset, std::string_view bytes)
{
    bytes = bytes.substr(0, room());
    m_output_sent += bytes.size();
    for (std::size_t at = 0; at < bytes.size(); at += wire::k_piece) {
        m_batch += wire::encode(
            wire::Output{stream, offset + at, std::string(bytes.substr(at, wire::k_piece))});
    }
    return bytes.size();
}

void Connection::history_came(const Bookmark& bookmark, std::vector<Piece> pieces,
                              const Backlog& backlog)
{
    m_asked = false;
    m_bookmark = bookmark;
    m_pieces = std::move(pieces);
    m_in_history = is_behind(m_bookmark.at, backlog.begin());
    m_next = backlog.first();
}

bool Connection::drained() const
{
    int unread = 0;
    return !m_output || ::ioctl(m_output.get(), FIONREAD, &unread) != 0 || unread == 0;
}

} // namespace gpuq::supervisor
