// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

namespace gpuq::cli {

/// Whether the nodes are certain to see the same as this host at the absolute `path`, which need
/// not exist. True if, with symbolic links resolved, it is on a network file system or below one of
/// `shared` (directories that the nodes must share with this host anyway, such as the current
/// directory; empty ones are ignored). False for directories that each host has its own copy of,
/// such as /usr and /opt, for the target of a dangling link, and for paths hidden by permissions.
/// Accesses the file system.
bool is_same_on_nodes(const std::string& path, const std::vector<std::string>& shared);

} // namespace gpuq::cli
