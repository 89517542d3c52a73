// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <optional>
#include <string>

/// Determines which local user owns a socket, using the kernel's socket list (sock_diag(7), else
/// /proc/net). Only sockets of this network namespace are known.
namespace gpuq {

/// The owner of the peer socket of an accepted TCP connection. nullopt when the peer is closed or
/// not a socket in this network namespace.
std::optional<unsigned> user_of_client(int socket);

/// The owner of the server side of a TCP connection made by this process: the process that accepted
/// it, or the listener if it is not accepted yet. nullopt as above. Call it while the connection is
/// open, and before sending anything.
std::optional<unsigned> user_of_server(int socket);

/// The owner of the socket that listens on a TCP port of 127.0.0.1 (AF_INET) or ::1 (AF_INET6).
/// Makes no connection. nullopt when none does, or it is not known.
std::optional<unsigned> user_of_listener(int family, std::uint16_t port);

/// True when both ends of a TCP connection have the same address or the peer has a loopback
/// address, so that the server is on this machine.
bool is_within_machine(int socket);

/// The user who has bound an abstract Unix socket. nullopt when it is not bound, or the kernel does
/// not report its owner (Linux before 5.3).
std::optional<unsigned> user_of_abstract_socket(const std::string& name);

} // namespace gpuq
