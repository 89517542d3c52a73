// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/streams.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <variant>

namespace gpuq::remote {
namespace {

/// Received bytes are confirmed in batches of this size, not after each write.
constexpr std::uint32_t k_worth_reporting = frames::k_stream_room / 4;

} // namespace

/// If bytes are missing, the local program must not see a regular end of file: reset the connection
/// (linger 0).
Streams::Stream::~Stream()
{
    if (socket && !is_over()) {
        const linger at_once{1, 0};
        ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
}

Streams::Streams(EventLoop& loop, std::function<Channel*()> channel)
    : m_loop(loop)
    , m_channel(std::move(channel))
{
}

void Streams::give(std::uint32_t id, Descriptor socket)
{
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) {
        return;
    }
    set_nonblocking(socket.get());
    Stream& stream = found->second;
    stream.socket = std::move(socket);
    stream.watch = m_loop.watch([this, &stream] { return interest_in(stream); },
                                [this, id, &stream] { carry(id, stream); });
}

void Streams::refuse(std::uint32_t id, std::string why)
{
    m_streams.erase(id);
    m_channel()->send(frames::StreamClosed{id, std::move(why)});
}

std::optional<std::uint32_t> Streams::on_frame(const frames::Frame& frame)
{
    if (const auto* bytes = std::get_if<frames::StreamBytes>(&frame)) {
        return on_bytes(*bytes) ? std::nullopt : std::optional(bytes->stream);
    }
    if (const auto* taken = std::get_if<frames::StreamTaken>(&frame)) {
        on_taken(*taken);
    } else if (const auto* end = std::get_if<frames::StreamEnd>(&frame)) {
        on_end(end->stream);
    } else if (const auto* gone = std::get_if<frames::StreamClosed>(&frame)) {
        m_streams.erase(gone->stream);
    }
    return std::nullopt;
}

bool Streams::on_bytes(const frames::StreamBytes& bytes)
{
    const auto found = m_streams.find(bytes.stream);
    if (found == m_streams.end()) {
        return true;
    }
    Stream& stream = found->second;
    if (stream.came_all ||
        stream.outgoing.size() + stream.taken + bytes.bytes.size() > frames::k_stream_room) {
        return false;
    }
    stream.outgoing += bytes.bytes;
    if (stream.socket && !write_some(bytes.stream, stream)) {
        refuse(bytes.stream, "");
    }
    return true;
}

void Streams::on_taken(const frames::StreamTaken& taken)
{
    const auto found = m_streams.find(taken.stream);
    if (found != m_streams.end()) {
        found->second.may_send =
            std::min<std::uint64_t>(found->second.may_send + taken.count, frames::k_stream_room);
    }
}

void Streams::on_end(std::uint32_t id)
{
    const auto found = m_streams.find(id);
    if (found != m_streams.end()) {
        found->second.came_all = true;
    }
}

EventLoop::Interest Streams::interest_in(const Stream& stream) const
{
    const Channel* const channel = m_channel();
    if (channel == nullptr) {
        return {};
    }
    const bool reads = !stream.read_all && stream.may_send > 0 && !channel->is_full();
    const bool writes = !stream.outgoing.empty() || (stream.came_all && !stream.shut);
    return {reads || writes ? stream.socket.get() : -1,
            static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))};
}

void Streams::carry(std::uint32_t id, Stream& stream)
{
    const short events = interest_in(stream).events;
    const bool works = ((events & POLLOUT) == 0 || write_some(id, stream)) &&
                       ((events & POLLIN) == 0 || m_channel()->is_full() || read_some(id, stream));
    if (!works) {
        refuse(id, "");
    } else if (stream.is_over()) {
        m_streams.erase(id);
    }
}

bool Streams::read_some(std::uint32_t id, Stream& stream)
{
    std::array<char, wire::k_piece> buffer;
    const ssize_t count = ::read(stream.socket.get(), buffer.data(),
                                 std::min<std::uint64_t>(buffer.size(), stream.may_send));
    if (count < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (count == 0) {
        stream.read_all = true;
        m_channel()->send(frames::StreamEnd{id});
        return true;
    }
    stream.may_send -= static_cast<std::uint64_t>(count);
    m_channel()->send(
        frames::StreamBytes{id, std::string(buffer.data(), static_cast<std::size_t>(count))});
    return true;
}

bool Streams::write_some(std::uint32_t id, Stream& stream)
{
    while (!stream.outgoing.empty()) {
        const ssize_t count = ::send(stream.socket.get(), stream.outgoing.data(),
                                     stream.outgoing.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return errno == EAGAIN;
        }
        stream.outgoing.erase(0, static_cast<std::size_t>(count));
        stream.taken += static_cast<std::uint32_t>(count);
        if (stream.taken >= k_worth_reporting) {
            m_channel()->send(frames::StreamTaken{id, std::exchange(stream.taken, 0)});
        }
    }
    if (stream.came_all && !stream.shut) {
        stream.shut = true;
        ::shutdown(stream.socket.get(), SHUT_WR);
    }
    return true;
}

} // namespace gpuq::remote
