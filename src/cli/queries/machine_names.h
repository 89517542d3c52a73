// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <cstddef>
#include <string>
#include <vector>

/// Names on this machine that may complete an argument. They block as long as the file system does.
namespace gpuq::cli {

/// The paths that begin with a text, at most `most`; directories end with `/`. Hidden files only if
/// the text names one.
std::vector<std::string> paths_beginning_with(const std::string& beginning, std::size_t most = 200);

/// The conda environments that `--conda` finds by name, and the paths of others that conda has
/// noted. Conda itself, which takes a second to start, is not executed.
std::vector<std::string> conda_environments(Services& services);

/// The modules in the directories of MODULEPATH: `cuda`, `cuda/12.4`.
std::vector<std::string> environment_modules(Services& services);

} // namespace gpuq::cli
