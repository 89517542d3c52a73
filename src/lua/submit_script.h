// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/submit_script.h"

#include <memory>
#include <string>

namespace gpuq::lua {

/// Loads a job_submit.lua into a real Lua interpreter that provides the parts of Slurm a script may
/// use: the table `slurm`, and jobs whose unset fields are nil or NO_VAL and that refuse fields
/// unknown to Slurm. `usage` with Lua's message for a script that slurmctld would not load.
Result<std::unique_ptr<SubmitScript>> load_submit_script(const std::string& text);

} // namespace gpuq::lua
