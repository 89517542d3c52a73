// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq::cli {

/// Completion scripts, generated from the tables of verbs and options.
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

} // namespace gpuq::cli
