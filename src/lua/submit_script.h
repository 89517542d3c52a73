// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/submit_script.h"

#include <memory>
#include <string>

namespace gpuq::lua {

/// A real Lua with the text of a job_submit.lua loaded into it, and of Slurm what such a text may
/// use: the table `slurm`, and jobs whose unset fields are nil or NO_VAL and that refuse fields
/// Slurm does not have. `usage` with Lua's words for a text that slurmctld would not load.
Result<std::unique_ptr<SubmitScript>> load_submit_script(const std::string& text);

} // namespace gpuq::lua
