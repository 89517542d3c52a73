// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <optional>
#include <string>

/// TCP connections between hosts of a cluster. Addresses are numeric, so that nothing here waits
/// for a name server; an address with a port reads "192.0.2.7:4711" or "[2001:db8::7]:4711". No
/// socket says anything about the user or the host at its other end.
namespace gpuq {

/// The address of this host that packets to `destination` would come from; no packet is sent.
/// Empty if there is no route, or `destination` is no address.
std::string address_towards(const std::string& destination);

/// Listens on a free port of one of this host's addresses; non-blocking.
Result<Descriptor> listen_on_network(const std::string& address, int waiting);

/// The address and port of a listening socket; empty if it has none.
std::string address_of_listener(int socket);

/// Begins to connect and returns at once: the socket becomes writable when it is connected, and
/// readable, with an error, when that fails. `usage` if the text is no address with a port.
Result<Descriptor> begin_to_connect(const std::string& address);

/// Sends small pieces at once, and lets a connection to a dead host end after half a minute.
void prepare_network_socket(int socket);

} // namespace gpuq
