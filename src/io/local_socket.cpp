// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/local_socket.h"

#include "core/user_name.h"
#include "io/socket_owner.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

namespace gpuq {
namespace {

/// An abstract address: the name follows a NUL byte, and the address length marks its end.
struct Address {
    sockaddr_un address{};
    socklen_t size = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Error socket_error(const std::string& name, int number)
{
    const auto kind = number == ECONNREFUSED ? Error::Kind::missing
                      : number == EAGAIN     ? Error::Kind::busy
                                             : Error::Kind::io;
    return {kind, fmt::format("the socket @{}: {}", name, std::generic_category().message(number))};
}

Result<Address> address_of(const std::string& name)
{
    Address made;
    made.address.sun_family = AF_UNIX;
    if (name.size() >= sizeof made.address.sun_path) {
        return socket_error(name, ENAMETOOLONG);
    }
    std::memcpy(made.address.sun_path + 1, name.data(), name.size());
    made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return made;
}

Descriptor stream_socket()
{
    return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

Error held_by(const std::string& name, unsigned uid)
{
    return {Error::Kind::denied,
            fmt::format("the socket @{} belongs to user {}", name, user_name(uid))};
}

std::optional<unsigned> peer_of(int socket)
{
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
               ? std::optional<unsigned>(peer.uid)
               : std::nullopt;
}

/// Explains why a name cannot be bound: which user holds it.
Error name_taken(const std::string& name)
{
    const auto user = user_of_abstract_socket(name);
    return user && *user != ::geteuid()
               ? held_by(name, *user)
               : Error{Error::Kind::busy,
                       fmt::format("the socket @{} is in use by another process", name)};
}

} // namespace

Result<Descriptor> listen_at(const std::string& name, int waiting)
{
    TRY_ASSIGN(const Address address, address_of(name));
    Descriptor socket = stream_socket();
    if (!socket || ::bind(socket.get(), address.get(), address.size) != 0 ||
        ::listen(socket.get(), waiting) != 0) {
        return errno == EADDRINUSE ? name_taken(name) : socket_error(name, errno);
    }
    return socket;
}

Result<Descriptor> listen_at_first(const std::vector<std::string>& names, int waiting,
                                   std::vector<Error>& taken)
{
    for (const std::string& name : names) {
        auto socket = listen_at(name, waiting);
        if (socket) {
            return socket;
        }
        taken.push_back(std::move(socket).error());
    }
    return taken.empty() ? Error{Error::Kind::internal, "no name to listen at"} : taken.back();
}

Result<Descriptor> connect_to(const std::string& name)
{
    TRY_ASSIGN(const Address address, address_of(name));
    Descriptor socket = stream_socket();
    // Do not block on a listener that does not accept.
    const int flags = socket ? ::fcntl(socket.get(), F_GETFL) : -1;
    if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
        ::connect(socket.get(), address.get(), address.size) != 0) {
        const int error = errno;
        const auto user =
            error == EAGAIN || error == ECONNREFUSED ? user_of_abstract_socket(name) : std::nullopt;
        return user && *user != ::geteuid() ? held_by(name, *user) : socket_error(name, error);
    }
    const auto peer = peer_of(socket.get());
    if (!peer || *peer != ::geteuid()) {
        return peer ? held_by(name, *peer)
                    : fail(Error::Kind::denied,
                           fmt::format("the socket @{}: its user is not known", name));
    }
    ::fcntl(socket.get(), F_SETFL, flags);
    return socket;
}

Result<Descriptor> connect_to_first(const std::vector<std::string>& names)
{
    std::optional<Error> why;
    for (const std::string& name : names) {
        auto socket = connect_to(name);
        if (socket) {
            return socket;
        }
        const bool other_user = socket.error().kind == Error::Kind::denied;
        if (!why || (other_user && why->kind != Error::Kind::denied)) {
            why = std::move(socket).error();
        }
    }
    return why.value_or(Error{Error::Kind::missing, "no name to connect to"});
}

Descriptor connect_to_path(const std::string& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        errno = path.empty() ? ENOENT : ENAMETOOLONG;
        return {};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket &&
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        socket.reset();
        errno = error;
    }
    return socket;
}

Result<std::array<Descriptor, 2>> make_socket_pair()
{
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail(Error::Kind::io, fmt::format("can't make a pair of sockets: {}",
                                                 std::generic_category().message(errno)));
    }
    return std::array{Descriptor(ends[0]), Descriptor(ends[1])};
}

bool is_same_user(int socket)
{
    const auto peer = peer_of(socket);
    return peer && *peer == ::geteuid();
}

} // namespace gpuq
