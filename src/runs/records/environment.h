// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"

#include <string>
#include <vector>

namespace gpuq {

/// The command that a supervisor executes for `request`: the program inside its sourced files,
/// modules, conda environment, virtual environment and container, listed from the outside in. Each
/// wrapper is a fixed bash script, which receives the user's values only as positional parameters.
/// A wrapper that fails prints the reason to stderr, prefixed with `gpuq: `, and exits with 125.
std::vector<std::string> program_argv(const Request& request);

/// The command before a program in a container, unless the site configures another: `apptainer exec
/// --nv {image}`.
std::vector<std::string> default_container_command();

/// `command` with every `{image}` replaced by the image; without `{image}`, the image is appended.
std::vector<std::string> container_arguments(const std::vector<std::string>& command,
                                             const std::string& image);

/// Bash code that defines the command `module`, or exits with 125; the second one does the same for
/// conda. They do not use the positional parameters. sbatch_script writes the same code.
extern const char* const k_find_module;
extern const char* const k_find_conda;

} // namespace gpuq
