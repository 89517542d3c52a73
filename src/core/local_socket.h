// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <string>

/// Stream sockets between processes of one machine, by names in the abstract namespace (unix(7)): a
/// name needs no folder that others could spoil, and goes with its socket whatever happens. Anybody
/// may take a name or knock at it, so each side looks who the other is.
namespace gpuq {

/// Listens at a name: the holder of a name is one process at a time. `io` when somebody has it.
Result<Descriptor> listen_at(const std::string& name, int waiting);

/// Connects to a process of the same user. `missing` when none listens there, `denied` when it is
/// another user's.
Result<Descriptor> connect_to(const std::string& name);

/// True when the other end is a process of this one's user (SO_PEERCRED).
bool is_same_user(int socket);

} // namespace gpuq
