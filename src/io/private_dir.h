// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <string>
#include <string_view>

/// Private directories of this user in the local /tmp: /tmp/gpuq-PURPOSE-UID-NAME, mode 0700. The
/// process that uses one holds a lock (flock) on it, which the kernel releases however the process
/// ends: an unlocked directory is a leftover (posix/leftovers.h).
namespace gpuq {

struct PrivateDir {
    std::string path;
    Descriptor lock; ///< close-on-exec; shared by children that do not exec
};

/// Creates a directory with a random name. The caller must remove it.
Result<PrivateDir> make_private_dir(std::string_view purpose);

/// Creates the directory, or reuses one of this user at that path. `denied` when it belongs to
/// another user, with that user's name, or is accessible to others; `busy` when another process has
/// locked it.
Result<PrivateDir> make_private_dir_at(const std::string& path);

/// The path up to, but without, NAME.
std::string private_dir_prefix(std::string_view purpose, unsigned uid);

/// True if `name` in /tmp is one of this user's private directories, for any purpose.
bool is_private_dir_name(std::string_view name, unsigned uid);

/// Opens and locks the directory `name` in `parent`. Empty when it is a symbolic link, not a
/// directory of this user, or locked by a process.
Descriptor lock_leftover(int parent, const char* name);

} // namespace gpuq
