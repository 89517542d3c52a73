// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "snapshots/manifest.h"

#include <optional>
#include <string>
#include <sys/stat.h>

namespace gpuq::snapshots {

struct RegularFile {
    std::string content;
    struct stat status; ///< before it was read
};

/// Access to the files below a directory that follows no symbolic link below it. Keeps the
/// directory of the last file open, which is quick for paths in order: use it for one pass.
class FilesBelow {
public:
    explicit FilesBelow(const std::string& root);

    int root() const { return m_root.get(); }

    /// Opens the directory of a file; -1, with errno, if it can't. Valid until the next call.
    int parent_of(const std::string& path);

    /// Opens a file; without one, errno is the reason.
    Descriptor open(const std::string& path, int flags);

    /// The status of a file, or of a symbolic link itself; nullopt, with errno, if there is none.
    std::optional<struct stat> status(const std::string& path);

    /// Reads a file; nullopt, with errno, if it is not a regular file or can't be read.
    std::optional<RegularFile> read(const std::string& path);

private:
    Descriptor m_root, m_parent;
    std::string m_parent_path; ///< with a slash at its end; empty: the root
};

/// The last part of a path.
std::string name_of(const std::string& path);

Stamp stamp_of(const struct stat& status);

} // namespace gpuq::snapshots
