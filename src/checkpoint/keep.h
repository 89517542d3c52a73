// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include "core/result.h"

#include <cstdint>
#include <string>

namespace gpuq::checkpoint {

enum class KeepBy : std::uint8_t {
    copy, ///< an independent copy: a clone if the file system supports it, else byte by byte
    link, ///< a clone, else a hard link, which does not protect from overwriting in place; else
          ///< byte by byte
};

/// Keeps a checkpoint where its program does not delete it: as `directory`/NAME, replacing an
/// existing one. The directory is created if missing (its parent must exist), and must be used by
/// no other program. The copy is either complete and on disk under its name, or absent: remains of
/// a killed keep() are removed by the next one with the same name. A directory is kept with all its
/// contents, with symbolic links as they are, but without FIFOs and devices. Times are those of the
/// original.
///
/// Returns the new path. `busy` if the checkpoint has changed since find_checkpoints() found it, or
/// while it was copied; `io` for file system errors. Blocks as long as the copy takes.
Result<std::string> keep(const Found& found, const std::string& directory, KeepBy by);

} // namespace gpuq::checkpoint
