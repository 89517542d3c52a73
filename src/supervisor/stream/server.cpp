// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/server.h"

#include "io/local_socket.h"
#include "io/network_socket.h"
#include "io/passed_descriptors.h"
#include "wire/frame.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

constexpr int k_waiting_clients = 64;
/// Pause when no client could be accepted: pending connections would keep the loop busy.
constexpr int k_pause_ms = 20;
/// An address outside of every site (RFC 5737), to which nothing is sent, and this host's own.
constexpr const char* k_elsewhere = "192.0.2.1";
constexpr const char* k_loopback = "127.0.0.1";

Descriptor spare()
{
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool has_room_for_streams()
{
    const Descriptor one = spare(), other = spare();
    return one && other;
}

} // namespace

Server::Server(Kind kind, Descriptor socket)
    : m_kind(kind)
    , m_socket(std::move(socket))
    , m_spare(spare())
{
}

Result<Server> Server::listen(const std::vector<std::string>& names, std::vector<Error>& taken)
{
    TRY_ASSIGN(Descriptor socket, listen_at_first(names, k_waiting_clients, taken));
    set_nonblocking(socket.get());
    return Server(Kind::local, std::move(socket));
}

Result<Server> Server::listen_on_network(const std::string& peer)
{
    std::string address = address_towards(peer);
    for (const char* other : {k_elsewhere, k_loopback}) {
        address = address.empty() ? address_towards(other) : address;
    }
    TRY_ASSIGN(Descriptor socket, gpuq::listen_on_network(address, k_waiting_clients));
    return Server(Kind::network, std::move(socket));
}

bool Server::accepts(int client) const
{
    return m_kind == Kind::network || is_same_user(client);
}

/// Over the network the client could be anybody: it is sent nothing.
void Server::refuse(int client, std::string_view refusal) const
{
    if (m_kind == Kind::local) {
        (void)::send(client, refusal.data(), refusal.size(), MSG_NOSIGNAL);
    }
}

Descriptor Server::accept(std::string_view refusal)
{
    Descriptor client = next();
    if (!client && (errno == EMFILE || errno == ENFILE)) {
        turn_away(refusal);
        return {};
    }
    if (client && !accepts(client.get())) {
        client.reset();
    } else if (client && !has_room_for_streams()) {
        refuse(client.get(), refusal);
        client.reset();
    }
    return client;
}

void Server::turn_away(std::string_view refusal)
{
    m_spare.reset();
    if (const Descriptor client = next(); !client) {
        // The log writer may have taken the descriptor.
        ::poll(nullptr, 0, k_pause_ms);
    } else if (accepts(client.get())) {
        refuse(client.get(), refusal);
    }
    m_spare = spare();
}

Descriptor Server::next()
{
    Descriptor client(::accept4(m_socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client && m_kind == Kind::network) {
        prepare_network_socket(client.get());
    }
    return client;
}

bool give_streams(int socket, int input, int output)
{
    // The frame has no meaning, but some data must be sent along.
    return send_with_descriptors(socket, wire::k_flush, {input, output});
}

ssize_t read_with_streams(int socket, char* bytes, std::size_t size,
                          std::optional<Streams>& streams)
{
    std::optional<DescriptorPair> passed;
    const ssize_t count = receive_with_descriptors(socket, {bytes, size}, passed);
    if (passed) {
        streams = {std::move((*passed)[0]), std::move((*passed)[1])};
    }
    return count;
}

} // namespace gpuq::supervisor
