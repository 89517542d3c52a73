// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Files that hold credentials: 0600, each in a folder of its own that is 0700 and the caller's.
/// Neither the folder nor the file may be a symbolic link, what belongs to others or is open to
/// them is refused. Nothing is synced: what a crash takes is written anew. Paths are absolute.
/// Errors: `missing`, `denied` with whose it is, `io`.
class SecretFiles {
public:
    virtual ~SecretFiles() = default;

    /// Makes the folder, and those above it that are not there.
    virtual Result<void> make_folder(const std::string& folder) = 0;
    /// The whole of a file of at most 1 MiB, opened anew along with its folder, which on NFS asks
    /// the server.
    virtual Result<std::string> read(const std::string& folder, const std::string& name) = 0;
    /// The same of a file that lies in a folder like any other, by its path.
    virtual Result<std::string> read_own(const std::string& path) = 0;
    /// Readers find the old bytes or the new ones. `missing` when the folder is not there.
    virtual Result<void> write(const std::string& folder, const std::string& name,
                               std::string_view bytes) = 0;
    /// Puts one file in the place of another.
    virtual Result<void> move(const std::string& folder, const std::string& from,
                              const std::string& to) = 0;
    /// When it was last written, by the clock of its disk; as `read`.
    virtual Result<Time> written_at(const std::string& folder, const std::string& name) = 0;
    /// Success also when it was not there.
    virtual Result<void> remove(const std::string& folder, const std::string& name) = 0;
    /// With all files in it; as above.
    virtual Result<void> remove_folder(const std::string& folder) = 0;
};

/// The Kerberos tickets, and the bearer token, that a program started here would use.
class LoginTickets {
public:
    virtual ~LoginTickets() = default;
    /// The cache, in the format of a FILE cache: secret. `missing`: there is none, which is no
    /// fault; else why it can't be read.
    virtual Result<std::string> cache() = 0;
    /// The first that WLCG Bearer Token Discovery finds, as it stands there: secret. `missing`:
    /// there is none, which is no fault; else why it can't be read.
    virtual Result<std::string> token() = 0;
};

} // namespace gpuq
