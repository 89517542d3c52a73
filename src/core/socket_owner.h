// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <optional>
#include <string>

/// Which user of this machine a socket belongs to, by the kernel's list of sockets (sock_diag(7),
/// else /proc/net). Only sockets of this network namespace are known.
namespace gpuq {

/// The user who has the other end of a TCP connection that a listener of ours has accepted.
/// Nothing when the other end is closed or is no socket of this network namespace.
std::optional<unsigned> user_of_client(int socket);

/// The user who serves a TCP connection that we have made: who has accepted it, else who listens
/// there. Nothing as above. It must be asked while the connection is open, and before anything is
/// sent.
std::optional<unsigned> user_of_server(int socket);

/// Whether the two ends of a TCP connection have the same address, or the other end has a loopback
/// one: then its server is on this machine.
bool is_within_machine(int socket);

/// The user who has bound an abstract Unix socket. Nothing when nobody has, or the kernel does not
/// tell (Linux before 5.3).
std::optional<unsigned> user_of_abstract_socket(const std::string& name);

} // namespace gpuq
