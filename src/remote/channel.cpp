// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {

void set_nonblocking(int descriptor)
{
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) == 0) {
        ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
    }
}

Channel::Channel(Descriptor in, Descriptor out)
    : m_in(std::move(in))
    , m_out(std::move(out))
{
    set_nonblocking(m_in.get());
    set_nonblocking(m_out.get());
}

void Channel::send_bytes(std::string_view header, std::string_view bytes)
{
    const bool at_once = waiting() == 0;
    add(header);
    if (at_once) {
        m_borrowed = bytes;
        (void)write_some(); // an error is reported by the next write
    } else {
        add(bytes);
    }
}

void Channel::add(std::string_view bytes)
{
    if (m_written >= m_outgoing.size() - m_written) { // never moves more than was sent
        m_outgoing.erase(0, m_written);
        m_written = 0;
    }
    m_outgoing += std::exchange(m_borrowed, {}); // later data must follow it
    m_outgoing += bytes;
}

bool Channel::write_some()
{
    while (waiting() > 0) {
        // writev() does not modify the data.
        const std::array<iovec, 2> parts{
            {{m_outgoing.data() + m_written, m_outgoing.size() - m_written},
             {const_cast<char*>(m_borrowed.data()), m_borrowed.size()}}};
        const ssize_t count = ::writev(m_out.get(), parts.data(), parts.size());
        if (count > 0) {
            const auto sent = static_cast<std::size_t>(count);
            const std::size_t own = std::min(sent, m_outgoing.size() - m_written);
            m_written += own;
            m_borrowed.remove_prefix(sent - own);
        } else if (count < 0 && errno == EINTR) {
            continue;
        } else {
            return count < 0 && errno == EAGAIN;
        }
    }
    return true;
}

void Channel::flush(int milliseconds)
{
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (write_some() && waiting() > 0) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd room{m_out.get(), POLLOUT, 0};
        if (left.count() <= 0 || ::poll(&room, 1, static_cast<int>(left.count())) <= 0) {
            return;
        }
    }
}

std::optional<std::string_view> Channel::read_some()
{
    const ssize_t count = ::read(m_in.get(), m_incoming.data(), m_incoming.size());
    if (count > 0) {
        return std::string_view(m_incoming.data(), static_cast<std::size_t>(count));
    }
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? std::optional(std::string_view())
                                                            : std::nullopt;
}

} // namespace gpuq::remote
