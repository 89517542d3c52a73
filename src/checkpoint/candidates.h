// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"
#include "checkpoint/tree.h"

#include "core/result.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::checkpoint {

/// A possible checkpoint, according to its name and kind alone.
struct Candidate {
    std::string path;     ///< absolute
    std::string relative; ///< the components from the first one matched by `*` or `?`
    Kind kind = Kind::file;
    Time modified; ///< of the file or directory itself
};

/// The newest `most` files and directories that match the pattern, newest first. Temporary and
/// hidden names count only if the pattern spells them out. Symbolic links never count, but a link
/// whose name the pattern spells out is replaced by its target if that is in the same directory. A
/// missing directory has no candidates. `usage` if the place is invalid or matches too many
/// directories, `io` if a directory can't be read.
Result<std::vector<Candidate>> candidates_at(const Place& place, std::size_t most);

} // namespace gpuq::checkpoint
