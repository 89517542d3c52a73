// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"

#include <string>
#include <vector>

namespace gpuq::checkpoint {

/// Renames what is incomplete and comes before the newest whole one in what look() gave, so that
/// nothing resumes from it: to NAME.incomplete, or NAME.incomplete-2 ... Gives the new paths.
/// Leaves alone what is unsettled, what is another file by now, what can't be renamed, and a
/// folder that holds more than one checkpoint (folder.h). Only while no program runs that writes
/// there.
std::vector<std::string> put_aside(const std::vector<Found>& found);

} // namespace gpuq::checkpoint
