// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// The state directory. Paths are relative to it (core/layout.h). It may be on NFS: every read
/// opens the file anew (close-to-open consistency), and nothing relies on inotify or cached
/// attributes, and only try_lock on locks. Symbolic links below the root are never followed. The
/// root and all directories created have mode 0700, all files 0600; a root that belongs to another
/// user is refused. Errors: `missing` for a path that does not exist, else `io` with path and
/// reason.
class Store {
public:
    struct NewFile {
        std::string path;
        std::string content;
    };

    virtual ~Store() = default;

    /// Absolute path, for messages and the supervisor's command line.
    virtual const std::string& root() const = 0;

    /// Reads a whole small file; `io` beyond 4 MiB.
    virtual Result<std::string> read(const std::string& path) = 0;
    /// Up to `size` bytes from `offset`; fewer at the end of the file, empty beyond it. Allocates
    /// only for the existing bytes, however large `size` is.
    virtual Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                        std::size_t size) = 0;
    /// Size in bytes.
    virtual Result<std::uint64_t> size(const std::string& path) = 0;

    /// Writes the file atomically: after a crash at any point it has either the old or the new
    /// content (temporary name, fsync, rename, fsync of the directory). Creates missing
    /// directories.
    virtual Result<void> write(const std::string& path, std::string_view content) = 0;
    /// The same, but the first writer wins: `busy` when the file exists.
    virtual Result<void> write_once(const std::string& path, std::string_view content) = 0;
    /// Creates several files in this order in little more than the time of one, with a single wait
    /// for the disk at the end. `busy` when one exists. Readers see each file complete; only a
    /// crash of the machine in the middle can leave empty files. On failure, the files before the
    /// one named in the error may exist.
    virtual Result<void> write_together(const std::vector<NewFile>& files) = 0;

    /// Appends a line, which must not contain a line end, to a file with one writer, creating it if
    /// necessary. It is on disk when the call returns. After a crash or a failure the file may end
    /// with a part of the line, without a line end; the next call then begins a new line.
    virtual Result<void> append_line(const std::string& path, std::string_view line) = 0;

    /// Creates a directory ahead of use. Unlike directories created by a write, it may be lost when
    /// the machine crashes.
    virtual Result<void> make_dir(const std::string& path) = 0;
    /// Names in a directory, unsorted, without `.` and `..`. `missing` when it does not exist.
    virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
    /// Removes a file or an empty directory. Succeeds if it does not exist.
    virtual Result<void> remove(const std::string& path) = 0;

    /// Locks one byte of a file, which is created if necessary, until the descriptor is closed or
    /// the process ends, however it does. `busy` if it is locked, also by the same process; `io` if
    /// the file system has no locks: use them only where their absence is tolerable.
    virtual Result<Descriptor> try_lock(const std::string& path, std::uint32_t byte) = 0;

    /// Total size of all files in and below a directory. Symbolic links count as 0.
    virtual Result<std::uint64_t> tree_size(const std::string& path) = 0;
    /// Removes a directory tree; symbolic links in it are removed, not followed. For readers the
    /// tree disappears at once. A crash leaves a temporary name, which the next removal in the same
    /// directory cleans up. Succeeds if it does not exist.
    virtual Result<void> remove_tree(const std::string& path) = 0;
};

} // namespace gpuq
