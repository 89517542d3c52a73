// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "ports/store.h"
#include "snapshots/manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gpuq::snapshots {

/// A snapshot on disk.
struct Taken {
    std::string id;
    Manifest manifest;
    std::uint64_t written = 0; ///< bytes of content that were not stored before
};

/// Takes a snapshot of the code (selection.h) of `directory`, an absolute path; `command` is the
/// command line of the program. Only files changed since the last snapshot of the same root are
/// read; their contents go into one new pack. A file that is just being written is read again, for
/// up to 0.4 s in all. Everything is on disk when this returns; after a
/// failure, nothing refers to the files that may have been written. `busy` if there are too many
/// files, or more than 128 MiB of them; `missing` if not `thorough` (selection.h); `io`.
Result<Taken> take(Store& store, const std::string& directory,
                   const std::vector<std::string>& command, bool thorough);

/// Reads a snapshot. `missing` or `usage` if it is not there or unreadable.
Result<Manifest> read(Store& store, const std::string& id);

/// The content of a file of a snapshot. `io` if it is not the one that was stored.
Result<std::string> content_of(Store& store, const Entry& entry);

/// Removes the snapshots and packs that neither `used` nor the newest snapshot of an existing root
/// needs, if they were already unused an hour before: in between, a run that is being submitted may
/// have begun to use them. Returns the number of bytes removed. Removes nothing if any of them
/// can't be read: what it needs is unknown.
Result<std::uint64_t> remove_unused(Store& store, const std::vector<std::string>& used, Time now);

} // namespace gpuq::snapshots
