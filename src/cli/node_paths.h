// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

namespace gpuq::cli {

/// Whether the nodes certainly see the same as this host at the absolute `path`, which need not
/// exist: it lies, symbolic links followed, below one of `shared` (directories that the nodes have
/// to share with this host anyway, such as the working directory; empty ones are ignored) or on a
/// network file system. Never for directories that each host has of its own, such as /usr and /opt,
/// for what a dangling link may lead to, and for what permissions hide. Touches the file system.
bool is_same_on_nodes(const std::string& path, const std::vector<std::string>& shared);

} // namespace gpuq::cli
