// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include <string>
#include <vector>

namespace gpuq::checkpoint {

/// Renames the incomplete checkpoints that precede the newest complete one in the result of
/// find_checkpoints(), so that no program resumes from them: to NAME.incomplete, NAME.incomplete-2,
/// ... Returns the new paths. Skips unsettled checkpoints, files that have been replaced or can't
/// be renamed, and directories that hold more than one checkpoint (folder.h). To be called only
/// while no program writes to the directory.
std::vector<std::string> put_aside(const std::vector<Found>& found);

} // namespace gpuq::checkpoint
