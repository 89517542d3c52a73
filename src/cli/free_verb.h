// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq free`: lists GPUs that are free now, and those that become free next.
extern const Verb k_free_verb;

} // namespace gpuq::cli
