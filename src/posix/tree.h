// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// Whole folders, from an open one. No symbolic link is followed: each folder is opened by its
/// name in the one above.
namespace gpuq {

/// The sum of the sizes of all regular files in the folder `name` of `parent`. Nothing when errno
/// says why; what vanishes meanwhile counts nothing.
std::optional<std::uint64_t> size_of_tree(int parent, const std::string& name);

/// Removes the folder `name` of `parent` with all that is in it, but nothing of another file system
/// or mount. False when errno says why; goes on after what can't be removed.
bool remove_tree_at(int parent, const std::string& name);

} // namespace gpuq
