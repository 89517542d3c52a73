// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include "core/result.h"

#include <cstdint>
#include <string>

namespace gpuq::checkpoint {

enum class KeepBy : std::uint8_t {
    copy, ///< a copy of its own: the file system's clone where it can, else byte by byte
    link, ///< a clone, else a hard link, which does not help when the program overwrites the file
          ///< in place; else byte by byte
};

/// Keeps a checkpoint where its program does not prune it: as `folder`/NAME, which is replaced
/// when it is there. The folder is made when it is not there (the one above it must be), and must
/// be nobody else's. Whole and on disk under its name, or not there: what a keep() that was killed
/// has left is removed by the next one of that name. A folder is kept with all that is in it, its
/// symbolic links as they are, without FIFOs and devices. Times are those of the original.
///
/// Gives the new path. `busy` when the checkpoint is not any more what look() found, or changed
/// meanwhile; `io` when the file system says no. Blocks as long as the copy takes.
Result<std::string> keep(const Found& found, const std::string& folder, KeepBy by);

} // namespace gpuq::checkpoint
