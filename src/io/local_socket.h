// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <array>
#include <string>
#include <vector>

/// Stream sockets between processes on one machine, with names in the abstract namespace (unix(7)).
/// Such a name needs no directory that another user could tamper with, and it disappears with its
/// socket. Any process may bind a name or connect to it, so each side checks the other's user.
namespace gpuq {

/// Listens on a name, which only one process can hold at a time. `busy` when another process of
/// this user holds it; `denied` when another user does, naming the user if the kernel reports it;
/// else `io`.
Result<Descriptor> listen_at(const std::string& name, int waiting);
/// Listens on the first free name. Appends to `taken` why the names before it failed.
Result<Descriptor> listen_at_first(const std::vector<std::string>& names, int waiting,
                                   std::vector<Error>& taken);

/// Connects to a process of the same user; never blocks. `missing` when no process listens on the
/// name, `denied` with the user's name when it belongs to another user, `busy` when the listener's
/// backlog is full.
Result<Descriptor> connect_to(const std::string& name);
/// Connects to the first name on which a process of this user listens. On failure, returns the
/// error of the first name held by another user, else that of the first name.
Result<Descriptor> connect_to_first(const std::vector<std::string>& names);

/// A non-blocking connection to a socket in the file system, whose user is not checked. Sets errno
/// on failure.
Descriptor connect_to_path(const std::string& path);

/// Two connected sockets. `io` when no descriptors are left.
Result<std::array<Descriptor, 2>> make_socket_pair();

/// True when the peer process has the same user (SO_PEERCRED).
bool is_same_user(int socket);

} // namespace gpuq
