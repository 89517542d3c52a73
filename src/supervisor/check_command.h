// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// Runs the user's own check of a checkpoint (--valid) in the run's folder, `{}` in its words being
/// the path, which is the last word when there is none; its output is thrown away. True when it
/// exits with 0 within ten minutes. No shell reads the words. Blocks.
bool passes_check(const std::vector<std::string>& command, const std::string& path, const Run& run);

/// `words` with `path` in place of every `{}`.
std::vector<std::string> with_path(const std::vector<std::string>& words, const std::string& path);

} // namespace gpuq::supervisor
