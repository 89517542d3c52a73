// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include "core/result.h"

#include <vector>

namespace gpuq::checkpoint {

/// If there are more candidates, only the newest ones are opened and judged.
inline constexpr std::size_t k_most_candidates = 64;

/// The checkpoints at a place, newest first: by `modified`, then by `step`. `before` is the result
/// of the previous call. A format without a reliable end mark (pickles, HDF5, unknown formats,
/// directories without a final marker) is `unsettled` until two calls have seen it with the same
/// size and time, then `whole`. An unchanged `whole` checkpoint is not read again. A changed one is
/// opened again, so that on NFS the call sees the server's state. An unreadable one is `unsettled`.
///
/// Files of other users are left out, also in directories in which others work; a directory of the
/// user with such a file in it is `unsettled`.
///
/// A missing directory has no checkpoints. `io` if a directory in the path can't be read; `usage`
/// if the place is invalid. Blocks as long as the file system does.
Result<std::vector<Found>> find_checkpoints(const Place& place, const std::vector<Found>& before);

/// The first complete checkpoint in a result of find_checkpoints(), or null; points into `found`.
const Found* newest_whole(const std::vector<Found>& found);

} // namespace gpuq::checkpoint
