// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

class DescriptorLink : public Link {
public:
    DescriptorLink(Descriptor in, Descriptor out)
        : m_in(std::move(in))
        , m_out(std::move(out))
    {
        set_nonblocking(m_in.get());
        set_nonblocking(m_out.get());
    }
    int input() const override { return m_in.get(); }
    int output() const override { return m_out.get(); }
    ssize_t read(std::span<char> buffer) override
    {
        return ::read(m_in.get(), buffer.data(), buffer.size());
    }
    ssize_t write(std::span<const iovec> parts) override
    {
        return ::writev(m_out.get(), parts.data(), static_cast<int>(parts.size()));
    }

private:
    Descriptor m_in, m_out;
};

} // namespace

void set_nonblocking(int descriptor)
{
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) == 0) {
        ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
    }
}

std::shared_ptr<Link> link_of(Descriptor in, Descriptor out)
{
    return std::make_shared<DescriptorLink>(std::move(in), std::move(out));
}

Channel::Channel(std::shared_ptr<Link> link)
    : m_link(std::move(link))
{
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
    while (wants_to_write()) {
        // writev() does not modify the data.
        const std::array<iovec, 2> parts{
            {{m_outgoing.data() + m_written, m_outgoing.size() - m_written},
             {const_cast<char*>(m_borrowed.data()), m_borrowed.size()}}};
        const ssize_t count = m_link->write(parts);
        if (count > 0) {
            const auto sent = static_cast<std::size_t>(count);
            const std::size_t own = std::min(sent, m_outgoing.size() - m_written);
            m_written += own;
            m_borrowed.remove_prefix(sent - own);
        } else if (count < 0 && errno == EINTR) {
            continue;
        } else {
            return count < 0 ? errno == EAGAIN : waiting() == 0;
        }
    }
    return true;
}

void Channel::flush(int milliseconds)
{
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (write_some() && wants_to_write()) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd room{output(), POLLOUT, 0};
        if (left.count() <= 0 || ::poll(&room, 1, static_cast<int>(left.count())) <= 0) {
            return;
        }
    }
}

std::optional<std::string_view> Channel::read_some()
{
    const ssize_t count = m_link->read(m_incoming);
    if (count > 0) {
        return std::string_view(m_incoming.data(), static_cast<std::size_t>(count));
    }
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? std::optional(std::string_view())
                                                            : std::nullopt;
}

} // namespace gpuq::remote
