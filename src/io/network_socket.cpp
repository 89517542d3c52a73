// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/network_socket.h"

#include "core/number.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <system_error>

namespace gpuq {
namespace {

constexpr int k_idle_seconds = 10;
constexpr int k_probe_seconds = 5;
constexpr int k_probes = 4;
constexpr unsigned k_unacknowledged_ms = 30'000;
constexpr std::uint64_t k_highest_port = 65535;

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
    int family() const { return storage.ss_family; }
};

std::optional<Address> parse_address(const std::string& text, std::uint16_t port)
{
    Address address;
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        address.size = sizeof v4;
        std::memcpy(&address.storage, &v4, sizeof v4);
    } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        address.size = sizeof v6;
        std::memcpy(&address.storage, &v6, sizeof v6);
    } else {
        return std::nullopt;
    }
    return address;
}

std::optional<Address> parse_address_and_port(const std::string& text)
{
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) {
        return std::nullopt;
    }
    const auto port = whole_number(std::string_view(text).substr(colon + 1));
    std::string host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    return port && *port != 0 && *port <= k_highest_port
               ? parse_address(host, static_cast<std::uint16_t>(*port))
               : std::nullopt;
}

std::string to_text(const Address& address)
{
    char text[INET6_ADDRSTRLEN] = {};
    if (address.family() == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &address.storage, sizeof v4);
        ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    } else if (address.family() == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &address.storage, sizeof v6);
        ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
    return text;
}

int port_of(const Address& address)
{
    // The port has the same place in both.
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return ntohs(v4.sin_port);
}

std::optional<Address> local_address(int socket)
{
    Address address;
    address.size = sizeof address.storage;
    return ::getsockname(socket, address.get(), &address.size) == 0 ? std::optional(address)
                                                                    : std::nullopt;
}

Error network_error(const std::string& address)
{
    return {Error::Kind::io,
            fmt::format("{}: {}", address, std::generic_category().message(errno))};
}

} // namespace

std::string address_towards(const std::string& destination)
{
    constexpr std::uint16_t k_any_port = 9; // RFC 863; connecting a datagram socket sends nothing
    const auto address = parse_address(destination, k_any_port);
    const Descriptor socket(address ? ::socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)
                                    : -1);
    if (!socket || ::connect(socket.get(), address->get(), address->size) != 0) {
        return "";
    }
    const auto local = local_address(socket.get());
    return local ? to_text(*local) : "";
}

Result<Descriptor> listen_on_network(const std::string& address, int waiting)
{
    const auto parsed = parse_address(address, 0);
    if (!parsed) {
        return fail(Error::Kind::usage, fmt::format("'{}' is no numeric address", address));
    }
    Descriptor socket(::socket(parsed->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || ::bind(socket.get(), parsed->get(), parsed->size) != 0 ||
        ::listen(socket.get(), waiting) != 0) {
        return network_error(address);
    }
    return socket;
}

std::string address_of_listener(int socket)
{
    const auto address = local_address(socket);
    const std::string text = address ? to_text(*address) : "";
    if (text.empty()) {
        return "";
    }
    return address->family() == AF_INET6 ? fmt::format("[{}]:{}", text, port_of(*address))
                                         : fmt::format("{}:{}", text, port_of(*address));
}

Result<Descriptor> begin_to_connect(const std::string& address)
{
    const auto parsed = parse_address_and_port(address);
    if (!parsed) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is no numeric address with a port", address));
    }
    Descriptor socket(::socket(parsed->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || (::connect(socket.get(), parsed->get(), parsed->size) != 0 &&
                    errno != EINPROGRESS && errno != EINTR)) {
        return network_error(address);
    }
    prepare_network_socket(socket.get());
    return socket;
}

void prepare_network_socket(int socket)
{
    // Without these it works too, only slower.
    const int yes = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &k_idle_seconds, sizeof k_idle_seconds);
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &k_probe_seconds,
                       sizeof k_probe_seconds);
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &k_probes, sizeof k_probes);
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &k_unacknowledged_ms,
                       sizeof k_unacknowledged_ms);
}

} // namespace gpuq
