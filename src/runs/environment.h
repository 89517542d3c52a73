// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"

#include <string>
#include <vector>

namespace gpuq {

/// What a supervisor executes for `request`: the program inside its sourced files, its modules, its
/// conda or virtual environment and its container, in this order from outside. Each wrapper is a
/// fixed script of bash; words of the user reach it as positional parameters only. A wrapper that
/// can not do its work says why on stderr, begins with `gpuq: `, and exits with 125.
std::vector<std::string> program_argv(const Request& request);

/// The site's words before a program in a container: `apptainer exec --nv {image}`, unless
/// configured.
std::vector<std::string> default_container_command();

/// `command` with its image in place of every `{image}`; followed by it when there is none.
std::vector<std::string> container_words(const std::vector<std::string>& command,
                                         const std::string& image);

/// Lines of bash that make the command `module` known, or leave with 125; and the same for conda.
/// They do not use the positional parameters. sbatch_script writes the same lines.
extern const char* const k_find_module;
extern const char* const k_find_conda;

} // namespace gpuq
