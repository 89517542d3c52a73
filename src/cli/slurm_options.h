// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace gpuq::cli {

/// The value of --slurm: options of sbatch, kept as typed. `usage` for one that would contradict
/// what gpuq asks for or take the run, its output or its environment out of gpuq's hands, in any of
/// the ways to write it that sbatch knows: long, shortened, by its letter, behind other letters.
Result<std::string> parse_slurm_options(std::string_view text);

} // namespace gpuq::cli
