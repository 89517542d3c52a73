// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "runs/asked_for.h"
#include "runs/plan.h"

#include <string>

namespace gpuq {

/// Looks at the program before Slurm is asked for anything: a run that is certain to fail at its
/// start need not wait for a GPU. Refuses only what this host can know: where a container, a
/// module, a sourced script or an earlier run (--after) may provide the program, or the path may
/// lead elsewhere on the node (Surroundings::same_on_nodes), the node decides.
///
/// Gives a warning for the user, empty when there is none: a command that is not in PATH here.
/// `not_found` (127): no such program or script, or its interpreter is missing; `not_executable`
/// (126): a directory, no permission; `usage`: a file that an option names is missing.
Result<std::string> check_program(const AskedFor& asked, const Surroundings& surroundings);

} // namespace gpuq
