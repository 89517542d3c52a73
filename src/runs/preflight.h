// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "runs/plan.h"
#include "runs/run_parameters.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Checks the program before anything is requested from Slurm: a run that is certain to fail at its
/// start should not wait for a GPU. Refuses only errors that this host can know about: if a
/// container, a module, a sourced script or an earlier run (--after) may provide the program, or if
/// the path may be a different file on the node (SiteContext::same_on_nodes), the node decides. The
/// program behind env, timeout and similar ones (index_of_wrapped) is checked as well.
///
/// Returns a warning for the user, or an empty string: a command that is not in PATH on this host.
/// `not_found` (127): no such program or script, or its interpreter is missing; `not_executable`
/// (126): a directory, or no permission; `usage`: a file named by an option is missing.
Result<std::string> check_program(const RunParameters& parameters, const SiteContext& site_context);

/// Checks a command that a run executes beside its program, in the same environment (--valid,
/// --propose), as check_program() does the program, but without the special rules for files of the
/// working directory. `usage`, with the name of the option: it can't be executed.
Result<std::string> check_command(std::string_view option, const std::vector<std::string>& command,
                                  const RunParameters& parameters, const SiteContext& site_context);

/// Whether the executable file is a text without a `#!` line, which is executed by /bin/sh.
bool lacks_interpreter(const std::string& path, const SiteContext& site_context);

} // namespace gpuq
