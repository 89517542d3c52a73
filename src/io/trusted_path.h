// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <optional>
#include <string>
#include <sys/stat.h>

/// Opens files that gpuq obeys or that hold secrets (configuration, policy, keys, the state
/// directory) only if no other user can change them. The rules are those of sshd's StrictModes: the
/// file, every directory leading to it and every symbolic link must belong to this user or to root,
/// and must not be writable for group or others. A directory on the path may be writable if it has
/// the sticky bit, like /tmp. A POSIX ACL that grants write access shows up in the group bits. The
/// checks are skipped where owners and modes have no meaning: on AFS, and for root's files in a
/// user namespace without root.
///
/// The path is opened directory by directory through descriptors, so that the checked object is the
/// one that is opened. This costs two system calls per path component.
///
/// Errors: `denied` with the offending path, its mode or owner, and a command that fixes it;
/// `missing`; `usage` if it is not a regular file; `io`.
namespace gpuq {

/// Opens a regular file for reading. A relative path starts in the current directory. A file that
/// does not exist is always `missing`, even in a directory that other users can write to. `also`:
/// an additional trusted user.
Result<Descriptor> open_trusted_file(const std::string& path,
                                     std::optional<unsigned> also = std::nullopt);

/// Opens a directory.
Result<Descriptor> open_trusted_directory(const std::string& path);

/// Opens the parent directory of the absolute path `path`. It may have the sticky bit, like /tmp;
/// the caller must check the owner of the entry itself.
Result<Descriptor> open_trusted_parent(const std::string& path);

/// Whether a file belongs to another user than the caller and root. `fd`: any file of the same file
/// system; on AFS, owners have no meaning. Files of users without a number here are not counted:
/// file servers that map all users to one have no others.
bool is_of_another_user(const struct stat& facts, int fd);

} // namespace gpuq
