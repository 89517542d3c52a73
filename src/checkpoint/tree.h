// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include "core/ids.h"
#include "io/descriptor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/stat.h>

/// Access to files and directories on disk. No symbolic link below an open directory is followed,
/// and only regular files and directories are opened.
namespace gpuq::checkpoint {

enum class Kind : std::uint8_t { file, directory, link, other };

/// An entry of a directory, at any depth.
struct Part {
    std::string path; ///< relative to the directory, without a `/` at its ends
    Kind kind = Kind::other;
    std::uint64_t bytes = 0; ///< of a file
    Time modified;
};

Kind kind_of(const struct stat& status);
Time modified_of(const struct stat& status);

/// A regular file and its fstat result, which on NFS is the server's current state. Without a
/// descriptor, `error` is an errno; ELOOP also for other kinds of files.
struct OpenFile {
    Descriptor file;
    struct stat status = {};
    int error = 0;
};
OpenFile open_file(int parent, const std::string& name);

/// Opens a directory by its name in another one (AT_FDCWD: a path); no descriptor on failure, with
/// the reason in errno.
Descriptor open_directory(int parent, const std::string& name);

struct Tree {
    std::vector<Part> parts; ///< each directory before its contents
    bool is_all = true;      ///< false if there are more than k_most_parts, or it is too deep
    bool is_own = true;      ///< false if another user owns a part
    int error = 0;           ///< an errno if a directory in it can't be read, else 0
};

/// The maximum number of parts that are visited.
inline constexpr std::size_t k_most_parts = 100'000;

/// Called for each part; `name` is its name in the open directory `parent`. May correct the part's
/// data.
using Visit = std::function<void(int parent, const std::string& name, Part& part)>;

/// A Visit that does nothing.
void leave_as_it_is(int parent, const std::string& name, Part& part);

/// All contents of an open directory, in the order of the names. Entries that disappear in the
/// meantime are left out.
Tree walk(int directory, const Visit& visit);

/// Sets the size and time of a whole directory from the files and directories in it, so that a copy
/// has the same. `own` is the time of the directory itself.
void measure(Found& found, const Tree& tree, Time own);

} // namespace gpuq::checkpoint
