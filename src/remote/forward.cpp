// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/forward.h"

#include "core/number.h"
#include "core/user_name.h"
#include "io/socket_owner.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuq::remote {
namespace {

constexpr int k_backlog = 64;
constexpr std::uint64_t k_largest_port = 65535;
/// Programs configured for localhost listen on 127.0.0.1 or on ::1; the dialer tries both.
constexpr const char* k_that_node = "localhost";

std::optional<std::uint16_t> port_in(std::string_view text)
{
    const auto number = whole_number(std::string(text));
    return number && *number > 0 && static_cast<std::uint64_t>(*number) <= k_largest_port
               ? std::optional(static_cast<std::uint16_t>(*number))
               : std::nullopt;
}

bool is_host(std::string_view text)
{
    return !text.empty() && text.front() != '-' &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
           });
}

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

Address loopback(int family, std::uint16_t port)
{
    Address address;
    if (family == AF_INET) {
        sockaddr_in four{};
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::memcpy(&address.storage, &four, address.size = sizeof four);
    } else {
        sockaddr_in6 six{};
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(port);
        six.sin6_addr = in6addr_loopback;
        std::memcpy(&address.storage, &six, address.size = sizeof six);
    }
    return address;
}

/// Sets errno on failure.
Descriptor listener(int family, std::uint16_t port)
{
    Descriptor made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    const Address address = loopback(family, port);
    // Connections of a previous session may still be closing.
    if (made && (::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
                 (family == AF_INET6 &&
                  ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) != 0) ||
                 ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address.storage),
                        address.size) != 0 ||
                 ::listen(made.get(), k_backlog) != 0)) {
        const int error = errno;
        made.reset();
        errno = error;
    }
    return made;
}

/// ` by user USER` for a port on which another user listens; empty if that is not known. Without a
/// connection, which the other process would report.
std::string owner_of(int family, std::uint16_t port)
{
    const auto user = user_of_listener(family, port);
    return user && *user != ::geteuid() ? " by user " + user_name(*user) : "";
}

} // namespace

bool is_destination(std::string_view text)
{
    const std::size_t colon = text.find(':');
    return colon != std::string_view::npos && is_host(text.substr(0, colon)) &&
           port_in(text.substr(colon + 1));
}

Result<Forward> forward_from(std::string_view text)
{
    const std::size_t colon = text.find(':');
    const std::string_view here = text.substr(0, colon);
    const std::string_view rest = colon == std::string_view::npos ? here : text.substr(colon + 1);
    const auto port = port_in(here);
    Forward forward{port.value_or(0), rest.find(':') == std::string_view::npos
                                          ? fmt::format("{}:{}", k_that_node, rest)
                                          : std::string(rest)};
    if (!port || !is_destination(forward.to)) {
        return fail(
            Error::Kind::usage,
            fmt::format("'{}': expected PORT, PORT:PORT or PORT:HOST:PORT, the local port first",
                        sanitised(text)));
    }
    return forward;
}

Result<std::vector<Descriptor>> listen_here(std::uint16_t port)
{
    std::vector<Descriptor> listeners;
    for (const int family : {AF_INET, AF_INET6}) {
        Descriptor one = listener(family, port);
        if (one) {
            listeners.push_back(std::move(one));
        } else if (errno == EADDRINUSE) {
            return fail(Error::Kind::usage,
                        fmt::format("local port {0} is in use{1}: choose another", port,
                                    owner_of(family, port)));
        } else if (family == AF_INET) { // ::1 may be unavailable
            return fail(Error::Kind::io,
                        fmt::format("local port {}: {}", port, std::strerror(errno)));
        }
    }
    return listeners;
}

} // namespace gpuq::remote
