// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// Runs the user's own check of a checkpoint (--valid) in the run's directory. `{}` in its
/// arguments is replaced by the path; without `{}` the path becomes the last argument. Output is
/// discarded. True if the command exits with 0 within ten minutes. No shell is involved. Blocks.
bool passes_check(const std::vector<std::string>& command, const std::string& path, const Run& run);

/// Returns `arguments` with every `{}` replaced by `path`.
std::vector<std::string> with_path(const std::vector<std::string>& arguments,
                                   const std::string& path);

} // namespace gpuq::supervisor
