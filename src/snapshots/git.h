// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpuq::snapshots {

/// The output of a git command in a directory. git takes no locks, and executes nothing that the
/// repository names as a file system monitor. nullopt: there is no git, it refuses the directory,
/// or it fails.
std::optional<std::string> git(const std::string& directory,
                               const std::vector<std::string>& arguments);

} // namespace gpuq::snapshots
