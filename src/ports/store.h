// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// The state folder. Paths are relative to it (core/layout.h). The folder may be on NFS: every
/// read opens the file anew (close-to-open), nothing relies on inotify, locks or cached attributes.
/// No symbolic link is ever followed below the root; the root and every folder made is 0700,
/// every file 0600; a root that belongs to somebody else is refused.
/// Errors: `missing` for what is not there, `io` for the rest, with path and reason.
class Store {
public:
    struct NewFile {
        std::string path;
        std::string content;
    };

    virtual ~Store() = default;

    /// Absolute path of the folder, for people and for the supervisor's command line.
    virtual const std::string& root() const = 0;

    /// The whole of a small file; `io` beyond 4 MiB.
    virtual Result<std::string> read(const std::string& path) = 0;
    /// Up to `size` bytes from `offset`; shorter at the end of the file, empty beyond it. Takes
    /// room for what is there, however large `size` is.
    virtual Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                        std::size_t size) = 0;
    /// Size in bytes.
    virtual Result<std::uint64_t> size(const std::string& path) = 0;

    /// Old or new content after a crash at any instruction, never a mixture: written to a
    /// temporary name, synced, renamed, folder synced. Makes missing folders.
    virtual Result<void> write(const std::string& path, std::string_view content) = 0;
    /// The same, but the first writer wins: `busy` when the file is there already.
    virtual Result<void> write_once(const std::string& path, std::string_view content) = 0;
    /// Files that are all new, in this order, for little more than the time of one: the disk is
    /// waited for once, at the end. `busy` when one is there already. A reader sees each whole;
    /// only after a crash of the machine in the middle may one be there that is empty. After a
    /// failure those before the file that it names may be there.
    virtual Result<void> write_together(const std::vector<NewFile>& files) = 0;

    /// For what comes later: unlike the folders that a write makes, it may be gone after a crash of
    /// the machine.
    virtual Result<void> make_dir(const std::string& path) = 0;
    /// Names in a folder, unsorted, without `.` and `..`. `missing` when there is no such folder.
    virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
    /// A file, or a folder that is empty. Success also when it was not there.
    virtual Result<void> remove(const std::string& path) = 0;

    /// The sum of the sizes of all files in a folder and below it. A symbolic link counts nothing.
    virtual Result<std::uint64_t> tree_size(const std::string& path) = 0;
    /// A folder with all that is in it; a symbolic link in it goes, what it points to stays. The
    /// folder vanishes at once for readers; a crash leaves a temporary name, which the next
    /// removal beside it takes along. Success also when it was not there.
    virtual Result<void> remove_tree(const std::string& path) = 0;
};

} // namespace gpuq
