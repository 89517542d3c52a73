// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <string>
#include <vector>

/// Stream sockets between processes of one machine, by names in the abstract namespace (unix(7)): a
/// name needs no folder that others could spoil, and goes with its socket whatever happens. Anybody
/// may take a name or knock at it, so each side looks who the other is.
namespace gpuq {

/// Listens at a name, which one process at a time has. `busy` when a process of this user has it,
/// `denied` when another user has it, with the user's name where the kernel gives it; else `io`.
Result<Descriptor> listen_at(const std::string& name, int waiting);
/// The same at the first of the names that nobody has. Appends why it was not the ones before.
Result<Descriptor> listen_at_first(const std::vector<std::string>& names, int waiting,
                                   std::vector<Error>& taken);

/// Connects to a process of the same user, and never blocks. `missing` when none listens there,
/// `denied` with the user's name when it is another user's, `busy` when it accepts none now.
Result<Descriptor> connect_to(const std::string& name);
/// The same to the first of the names at which a process of this user listens. Otherwise the
/// error of the first name that another user has, or that of the first name.
Result<Descriptor> connect_to_first(const std::vector<std::string>& names);

/// True when the other end is a process of this one's user (SO_PEERCRED).
bool is_same_user(int socket);

} // namespace gpuq
