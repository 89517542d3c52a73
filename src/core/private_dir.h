// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <string>
#include <string_view>

/// Directories of this user's alone in /tmp of this machine: /tmp/gpuq-PURPOSE-UID-NAME, 0700. The
/// process that uses one holds a lock (flock) on it, which ends with the process however it ends:
/// an unlocked directory is a leftover (posix/leftovers.h).
namespace gpuq {

struct PrivateDir {
    std::string path;
    Descriptor lock; ///< close-on-exec; children that do not execute a program share it
};

/// Makes a directory with a random name. The caller removes it.
Result<PrivateDir> make_private_dir(std::string_view purpose);

/// Makes the directory, or takes one that this user has left at that path. `denied` when it is not
/// this user's alone, with the user's name; `busy` when another process holds it.
Result<PrivateDir> make_private_dir_at(const std::string& path);

/// Everything but NAME of a path.
std::string private_dir_prefix(std::string_view purpose, unsigned uid);

/// Whether a name in /tmp is one of this user's private directories, of whatever purpose.
bool is_private_dir_name(std::string_view name, unsigned uid);

/// Opens the directory `name` of `parent` and locks it. Nothing when it is no directory of this
/// user's, is a symbolic link, or a process holds it.
Descriptor lock_leftover(int parent, const char* name);

} // namespace gpuq
