// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/local_socket.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

namespace gpuq {
namespace {

/// An address in the abstract namespace: its name follows a NUL, and ends with the address.
struct Address {
    sockaddr_un address{};
    socklen_t size = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Error socket_error(const std::string& name, int number)
{
    return {number == ECONNREFUSED ? Error::Kind::missing : Error::Kind::io,
            fmt::format("the socket @{}: {}", name, std::generic_category().message(number))};
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

} // namespace

Result<Descriptor> listen_at(const std::string& name, int waiting)
{
    TRY_ASSIGN(const Address address, address_of(name));
    Descriptor socket = stream_socket();
    if (!socket || ::bind(socket.get(), address.get(), address.size) != 0 ||
        ::listen(socket.get(), waiting) != 0) {
        return socket_error(name, errno);
    }
    return socket;
}

Result<Descriptor> connect_to(const std::string& name)
{
    TRY_ASSIGN(const Address address, address_of(name));
    Descriptor socket = stream_socket();
    if (!socket || ::connect(socket.get(), address.get(), address.size) != 0) {
        return socket_error(name, errno);
    }
    if (!is_same_user(socket.get())) {
        return fail(Error::Kind::denied,
                    fmt::format("the socket @{}: another user listens there", name));
    }
    return socket;
}

bool is_same_user(int socket)
{
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == ::geteuid();
}

} // namespace gpuq
