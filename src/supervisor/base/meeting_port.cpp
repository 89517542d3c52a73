// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/meeting_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

namespace gpuq::supervisor {
namespace {

template <typename Address>
std::optional<int> bound_port(int socket, Address any)
{
    socklen_t size = sizeof any;
    auto* const address = reinterpret_cast<sockaddr*>(&any);
    if (socket < 0 || ::bind(socket, address, size) != 0 ||
        ::getsockname(socket, address, &size) != 0) {
        return std::nullopt;
    }
    if constexpr (requires { any.sin6_port; }) {
        return ntohs(any.sin6_port);
    } else {
        return ntohs(any.sin_port);
    }
}

Descriptor open_socket(int family)
{
    return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

} // namespace

std::optional<MeetingPort> MeetingPort::hold()
{
    Descriptor socket = open_socket(AF_INET6);
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    auto port = bound_port(socket.get(), any6);
    if (!port) { // a node without IPv6
        socket = open_socket(AF_INET);
        sockaddr_in any4{};
        any4.sin_family = AF_INET;
        port = bound_port(socket.get(), any4);
    }
    // Set only after bind(): otherwise bind() would share a port that another run has reserved in
    // the same way.
    const int on = 1;
    if (!port || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        return std::nullopt;
    }
    return MeetingPort(std::move(socket), *port);
}

} // namespace gpuq::supervisor
