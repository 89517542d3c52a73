// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/lasting_link.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gpuq::remote {
namespace {

/// Received bytes are confirmed in batches of this size.
constexpr std::size_t k_worth_confirming = 64 << 10;
constexpr std::size_t k_piece = wire::k_piece / 2;

} // namespace

LastingLink::LastingLink(std::string session)
    : m_session(std::move(session))
    , m_begins(true)
{
}

LastingLink::LastingLink(const frames::Open& open)
    : m_session(open.session)
    , m_begins(false)
{
}

void LastingLink::connect(Descriptor in, Descriptor out)
{
    m_connection = std::make_unique<Channel>(std::move(in), std::move(out));
    m_decoder = {};
    m_answered = false;
    frames::Open open;
    open.session = m_session;
    open.out = m_received;
    open.connection = ++m_connections;
    m_connection->send(open);
    send_some();
}

bool LastingLink::connect(const frames::Open& open, Channel connection, frames::Decoder decoder)
{
    if (open.connection <= m_connections || open.out > m_sent.end() ||
        !m_sent.send_from(open.out) || !m_sent.confirm(open.out)) {
        return false;
    }
    m_connections = open.connection;
    m_connection = std::make_unique<Channel>(std::move(connection));
    m_decoder = std::move(decoder);
    m_answered = true;
    frames::Hello hello;
    hello.known = true;
    hello.input = m_confirmed = m_received;
    m_connection->send(hello);
    send_some();
    return true;
}

int LastingLink::input() const
{
    return m_connection ? m_connection->input() : -1;
}

int LastingLink::output() const
{
    if (!m_connection) {
        return -1;
    }
    const bool is_useless = is_full() && m_sent.all_sent() && !m_connection->wants_to_write();
    return is_useless ? -1 : m_connection->output();
}

bool LastingLink::has_unsent() const
{
    const bool has_bytes = m_answered && !m_leaves && !m_sent.all_sent();
    return m_connection && (m_connection->wants_to_write() || has_bytes);
}

void LastingLink::leave()
{
    if (!std::exchange(m_leaves, true) && m_connection && m_answered) {
        m_connection->send(frames::Bye{});
        send_some();
    }
}

ssize_t LastingLink::read(std::span<char> buffer)
{
    if (m_read == m_arrived.size()) {
        m_arrived.clear();
        m_read = 0;
        receive();
    }
    const std::size_t count = std::min(buffer.size(), m_arrived.size() - m_read);
    std::copy_n(m_arrived.begin() + static_cast<std::ptrdiff_t>(m_read), count, buffer.begin());
    m_read += count;
    if (count == 0 && !m_lost) {
        errno = EAGAIN;
        return -1;
    }
    return static_cast<ssize_t>(count);
}

ssize_t LastingLink::write(std::span<const iovec> parts)
{
    std::size_t count = 0;
    for (const iovec& part : parts) {
        const std::size_t room = k_room - std::min(m_sent.size(), k_room);
        const std::size_t size = std::min(room, part.iov_len);
        m_sent.add({static_cast<const char*>(part.iov_base), size});
        count += size;
    }
    send_some();
    if (count == 0 && !parts.empty() && is_full()) {
        errno = EAGAIN;
        return -1;
    }
    return static_cast<ssize_t>(count);
}

/// Reads from the connection. Its end only disconnects.
void LastingLink::receive()
{
    if (!m_connection) {
        return;
    }
    const auto bytes = m_connection->read_some();
    m_decoder.feed(bytes.value_or(""));
    while (true) {
        const auto frame = m_decoder.next();
        if (!frame || (*frame && !take(**frame))) {
            m_lost = true;
            disconnect();
            return;
        }
        if (!*frame) {
            break;
        }
    }
    if (!bytes) {
        return disconnect();
    }
    confirm_received(k_worth_confirming);
    send_some();
}

bool LastingLink::take(const frames::Frame& frame)
{
    if (const auto* hello = std::get_if<frames::Hello>(&frame)) {
        m_answered = hello->known && m_begins && m_sent.send_from(hello->input) &&
                     m_sent.confirm(hello->input);
        if (m_answered && m_leaves) {
            m_connection->send(frames::Bye{});
        }
        return m_answered;
    }
    if (const auto* output = std::get_if<frames::Output>(&frame)) {
        return take_output(*output);
    }
    if (const auto* taken = std::get_if<frames::Taken>(&frame)) {
        return m_sent.confirm(taken->out);
    }
    if (std::holds_alternative<frames::Bye>(frame)) {
        if (!m_leaves) { // confirm it
            m_connection->send(frames::Bye{});
            (void)m_connection->write_some();
        }
        return false;
    }
    return true;
}

bool LastingLink::take_output(const frames::Output& output)
{
    if (output.offset != m_received) {
        return false;
    }
    m_received += output.bytes.size();
    m_arrived += output.bytes;
    return true;
}

void LastingLink::confirm_received(std::size_t worth)
{
    if (m_connection && m_received - m_confirmed >= worth) {
        m_confirmed = m_received;
        m_connection->send(frames::Taken{m_received, 0});
    }
}

void LastingLink::send_some()
{
    while (m_connection && m_answered && !m_leaves && !m_sent.all_sent() &&
           !m_connection->is_full()) {
        const std::uint64_t offset = m_sent.sent();
        m_connection->send(frames::Output{Stream::out, offset, std::string(m_sent.send(k_piece))});
    }
    if (m_connection && !m_connection->write_some()) {
        disconnect(); // bytes that were not read any more come again
    }
}

} // namespace gpuq::remote
