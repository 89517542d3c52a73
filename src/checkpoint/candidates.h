// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"
#include "checkpoint/tree.h"

#include "core/result.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::checkpoint {

/// What may be a checkpoint, by its name and kind alone.
struct Candidate {
    std::string path;     ///< absolute
    std::string relative; ///< its components that `*` and `?` have matched, and what is below them
    Kind kind = Kind::file;
    Time modified; ///< of the file or folder itself
};

/// The newest `most` files and folders that the pattern names, newest first. Temporary and hidden
/// names count only where the pattern spells them, symbolic links never; a link whose name the
/// pattern spells stands for its target when that lies beside it. A folder that is not there has
/// none. `usage` when the place makes no sense or stands for too much, `io` when a folder can't be
/// read.
Result<std::vector<Candidate>> candidates_at(const Place& place, std::size_t most);

} // namespace gpuq::checkpoint
