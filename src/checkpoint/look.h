// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include "core/result.h"

#include <vector>

namespace gpuq::checkpoint {

/// Of more candidates only the newest are opened and judged.
inline constexpr std::size_t k_most_candidates = 64;

/// What stands at a place, newest first: by `modified`, then by `step`. `before` is what the
/// previous look gave. One that can't tell its own end (pickles, HDF5, unknown kinds, folders that
/// no marker closes) is `unsettled` until two looks saw it with the same size and time, then
/// whole; one that was whole and has not changed is not read again. What changes is opened anew,
/// so on NFS a look sees what the server has. What can't be read is `unsettled`.
///
/// A folder that is not there has no checkpoints. `io` when a folder on the way can't be read;
/// `usage` when the place makes no sense. Blocks as long as the file system does.
Result<std::vector<Found>> look(const Place& place, const std::vector<Found>& before);

/// The first whole one of what look() gave, or nothing; it points into `found`.
const Found* newest_whole(const std::vector<Found>& found);

} // namespace gpuq::checkpoint
