// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include "core/descriptor.h"
#include "core/ids.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/stat.h>

/// Files and folders as they lie there. No symbolic link is followed below a folder that is open,
/// and nothing but regular files and folders is opened.
namespace gpuq::checkpoint {

enum class Kind : std::uint8_t { file, folder, link, other };

/// Something in a folder, at any depth.
struct Part {
    std::string path; ///< from the folder on, without a `/` at its ends
    Kind kind = Kind::other;
    std::uint64_t bytes = 0; ///< of a file
    Time modified;
};

Kind kind_of(const struct stat& status);
Time modified_of(const struct stat& status);

/// A regular file and what fstat says of it, which on NFS is what the server says now. Without a
/// descriptor `error` is an errno; ELOOP also for what is no regular file.
struct OpenFile {
    Descriptor file;
    struct stat status = {};
    int error = 0;
};
OpenFile open_file(int parent, const std::string& name);

/// A folder by its name in another one (AT_FDCWD: a path); none when errno says why.
Descriptor open_folder(int parent, const std::string& name);

struct Tree {
    std::vector<Part> parts; ///< each folder before what is in it
    bool is_all = true;      ///< false when there is more than k_most_parts, or it is too deep
    int error = 0;           ///< of a folder in it that can't be read: an errno, or 0
};

/// More is not looked at.
inline constexpr std::size_t k_most_parts = 100'000;

/// What is done with each part; `name` is its name in the open folder `parent`. It may correct
/// what the part says.
using Visit = std::function<void(int parent, const std::string& name, Part& part)>;

/// The Visit that does nothing.
void leave_as_it_is(int parent, const std::string& name, Part& part);

/// All that is in an open folder, in the order of the names. What vanishes meanwhile is left out.
Tree walk(int folder, const Visit& visit);

/// Says the size and time of a whole folder, of the files and folders in it: a copy has the same.
/// `own` is the time of the folder itself.
void measure(Found& found, const Tree& tree, Time own);

} // namespace gpuq::checkpoint
