// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// Operations on directory trees, given an open parent directory. Symbolic links are not followed:
/// each directory is opened by its name in its parent.
namespace gpuq {

/// Total size of all regular files in the directory `name` of `parent`. nullopt with errno set on
/// failure; entries that disappear meanwhile count as 0.
std::optional<std::uint64_t> size_of_tree(int parent, const std::string& name);

/// Removes the directory `name` of `parent` with its contents, except for other file systems
/// mounted in it. False with errno set on failure; continues after entries that cannot be removed.
bool remove_tree_at(int parent, const std::string& name);

} // namespace gpuq
