// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq usage`: GPU-hours out of Slurm's accounting.
extern const Verb k_usage_verb;

} // namespace gpuq::cli
