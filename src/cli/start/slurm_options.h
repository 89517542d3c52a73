// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace gpuq::cli {

/// The value of --slurm: options of sbatch, kept as typed. `usage` for an option that would
/// contradict gpuq's request, or take control of the run, its output or its environment from gpuq,
/// in any form that sbatch accepts: long, abbreviated, as a letter, or after other letters.
Result<std::string> parse_slurm_options(std::string_view text);

} // namespace gpuq::cli
