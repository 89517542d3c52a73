// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "runs/plan.h"
#include "runs/run_parameters.h"

#include <string>

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

} // namespace gpuq
