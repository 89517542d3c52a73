// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client_forwards.h"

#include "core/user_name.h"
#include "io/socket_owner.h"
#include "remote/peer_data.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <variant>

namespace gpuq::remote {
ClientForwards::ClientForwards(EventLoop& loop, std::vector<std::vector<Descriptor>> listeners,
                               Events events)
    : m_listeners(std::move(listeners))
    , m_events(std::move(events))
    , m_streams(loop, m_events.channel)
    , m_pause(loop, [] {})
{
    for (std::uint32_t forward = 0; forward < m_listeners.size(); ++forward) {
        for (const Descriptor& each : m_listeners[forward]) {
            watch(loop, forward, each.get());
        }
    }
}

void ClientForwards::watch(EventLoop& loop, std::uint32_t forward, int listener)
{
    const auto takes_visitors = [this] {
        return m_events.channel() != nullptr && m_events.has_run() &&
               m_streams.size() < frames::k_most_streams && !m_pause.is_started();
    };
    loop.add([=] { return EventLoop::to_read(listener, takes_visitors()); },
             [=, this] { on_accept(forward, listener); });
}

void ClientForwards::on_accept(std::uint32_t forward, int listener)
{
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
        return on_refused(errno);
    }
    const auto user = user_of_client(socket.get());
    if (user != ::geteuid()) { // any local user can connect to the port
        return print_message(
            fmt::format("refused a connection from {}",
                        user ? "user " + user_name(*user) : "a process of unknown user"));
    }
    const std::uint32_t stream = m_next_stream++;
    m_streams.begin(stream);
    m_streams.give(stream, std::move(socket));
    m_events.channel()->send(frames::Dial{stream, forward});
}

/// Without a descriptor the listener stays ready. Other errors are those of a connection that its
/// peer has already closed.
void ClientForwards::on_refused(int error)
{
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        m_pause.start_in(std::chrono::seconds{1});
        print_message(fmt::format("a connection waits: {}", std::strerror(error)));
    }
}

bool ClientForwards::is_unknown(const frames::Frame& frame) const
{
    return std::visit(
        [&](const auto& each) {
            if constexpr (requires { each.stream + 1U; }) {
                return each.stream >= m_next_stream;
            }
            return false;
        },
        frame);
}

bool ClientForwards::take(const frames::Frame& frame)
{
    const auto* gone = std::get_if<frames::StreamClosed>(&frame);
    if (gone && m_streams.has(gone->stream) && !gone->why.empty()) {
        print_message(gone->why);
    }
    return !m_streams.on_frame(frame);
}

/// Prints each reason only once, since browsers retry.
void ClientForwards::print_message(const std::string& why)
{
    if (why != m_printed) {
        m_printed = why;
        m_events.print_message(peer_text(why));
    }
}

} // namespace gpuq::remote
