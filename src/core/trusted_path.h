// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <optional>
#include <string>

/// What gpuq obeys or keeps secrets in must not be another user's to change: configuration, policy,
/// keys, the state directory. As sshd's StrictModes asks: the file, every directory on the way to
/// it and every symbolic link belong to this user or to root, and neither group nor others may
/// write to them. A directory on the way may be writable when it has the sticky bit, as /tmp has.
/// A POSIX ACL that lets others write shows in the group's bits. Where owners and modes mean
/// nothing they are not asked: on AFS, and for root in a user namespace without it.
///
/// The path is opened directory by directory, by descriptors: what was checked is what is opened.
/// Two system calls for each name in the path.
///
/// Errors: `denied` with the path that is at fault, its mode or owner, and the command that helps;
/// `missing`; `usage` for what is not a regular file; `io`.
namespace gpuq {

/// Opens a regular file for reading. A relative path begins in the working directory. `missing`
/// when it is not there, whoever could put one there.
/// `also`: a user who is trusted besides.
Result<Descriptor> open_trusted_file(const std::string& path,
                                     std::optional<unsigned> also = std::nullopt);

/// Opens a directory.
Result<Descriptor> open_trusted_directory(const std::string& path);

/// Opens the directory that `path`, which is absolute, is a name in. It may be one with the sticky
/// bit, as /tmp: whose the name itself is the caller checks.
Result<Descriptor> open_trusted_parent(const std::string& path);

} // namespace gpuq
