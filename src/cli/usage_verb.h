// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq usage`: prints GPU-hours from Slurm's accounting.
extern const Verb k_usage_verb;

} // namespace gpuq::cli
