// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/server.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr int k_waiting_clients = 64;
/// After nobody could be let in: what waits would keep the loop spinning.
constexpr int k_pause_ms = 20;

Result<sockaddr_un> address_of(const std::string& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return fail(Error::Kind::io, fmt::format("{}: too long for a socket", path));
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

/// In /tmp anybody could have made it: it has to be a folder of ours that nobody else may enter.
Result<void> check_folder(const std::string& folder)
{
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0) {
        return fail(errno == ENOENT ? Error::Kind::missing : Error::Kind::io,
                    fmt::format("{}: {}", folder, error_text(errno)));
    }
    if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
        return fail(Error::Kind::denied,
                    fmt::format("{} is not a folder of this user with mode 0700", folder));
    }
    return {};
}

bool is_same_user(int socket)
{
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == ::geteuid();
}

Descriptor spare()
{
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

} // namespace

Server::Server(Descriptor socket, std::string path)
    : m_socket(std::move(socket))
    , m_spare(spare())
    , m_path(std::move(path))
{
}

Server::~Server()
{
    if (m_socket) {
        ::unlink(m_path.c_str());
    }
}

Result<Server> Server::listen(const std::string& folder, const std::string& path)
{
    ::mkdir(folder.c_str(), 0700);
    TRY(check_folder(folder));
    TRY_ASSIGN(const sockaddr_un address, address_of(path));
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::unlink(path.c_str());
    if (!socket ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), k_waiting_clients) != 0) {
        return fail(Error::Kind::io, fmt::format("{}: {}", path, error_text(errno)));
    }
    return Server(std::move(socket), path);
}

Descriptor Server::accept(std::string_view refusal)
{
    Descriptor client = next();
    if (!client && (errno == EMFILE || errno == ENFILE)) {
        turn_away(refusal);
        return {};
    }
    if (client && !is_same_user(client.get())) {
        client.reset();
    }
    return client;
}

void Server::turn_away(std::string_view refusal)
{
    m_spare.reset();
    if (const Descriptor client = next(); !client) {
        // The writer of the log may have been faster.
        ::poll(nullptr, 0, k_pause_ms);
    } else if (is_same_user(client.get())) {
        (void)::send(client.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL);
    }
    m_spare = spare();
}

Descriptor Server::next()
{
    return Descriptor(::accept4(m_socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Result<Descriptor> connect_to(const std::string& folder, const std::string& path)
{
    TRY(check_folder(folder));
    TRY_ASSIGN(const sockaddr_un address, address_of(path));
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return fail(errno == ENOENT || errno == ECONNREFUSED ? Error::Kind::missing
                                                             : Error::Kind::io,
                    fmt::format("{}: {}", path, error_text(errno)));
    }
    if (!is_same_user(socket.get())) {
        return fail(Error::Kind::denied, fmt::format("{}: another user listens there", path));
    }
    return socket;
}

} // namespace gpuq::supervisor
