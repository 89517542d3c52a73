// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Files that hold credentials: mode 0600, each in its own directory of mode 0700 that belongs to
/// the caller. Directory and file must not be symbolic links, owned by other users or accessible to
/// them. Writes are not synced: data lost in a crash is obtained again. Paths are absolute. Errors:
/// `missing`, `denied` with the owner, `io`.
class SecretFiles {
public:
    virtual ~SecretFiles() = default;

    /// Creates the directory and missing parents.
    virtual Result<void> make_directory(const std::string& directory) = 0;
    /// Reads a file of at most 1 MiB. Opens the file and its directory anew, which on NFS
    /// revalidates with the server.
    virtual Result<std::string> read(const std::string& directory, const std::string& name) = 0;
    /// The same for a file in an ordinary directory, which is checked as in io/trusted_path.h.
    virtual Result<std::string> read_own(const std::string& path) = 0;
    /// Replaces the file atomically. `missing` when the directory does not exist.
    virtual Result<void> write(const std::string& directory, const std::string& name,
                               std::string_view bytes) = 0;
    /// Replaces one file by another.
    virtual Result<void> move(const std::string& directory, const std::string& from,
                              const std::string& to) = 0;
    /// Modification time by the clock of the file system; errors as for `read`.
    virtual Result<Time> written_at(const std::string& directory, const std::string& name) = 0;
    /// Succeeds if the file does not exist.
    virtual Result<void> remove(const std::string& directory, const std::string& name) = 0;
    /// Removes the directory and all files in it; succeeds if it does not exist.
    virtual Result<void> remove_directory(const std::string& directory) = 0;
};

/// The Kerberos tickets and the bearer token that a program started by this process would use.
class LoginTickets {
public:
    virtual ~LoginTickets() = default;
    /// The cache in the format of a FILE cache (secret). `missing`: no cache, not an error
    /// condition; other errors: why it cannot be read.
    virtual Result<std::string> cache() = 0;
    /// The first token found by WLCG Bearer Token Discovery, unmodified (secret). `missing`: no
    /// token, not an error condition; other errors: why it cannot be read.
    virtual Result<std::string> token() = 0;
};

} // namespace gpuq
