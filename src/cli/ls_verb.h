// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq ls`: lists the runs and plain jobs of this user.
extern const Verb k_ls_verb;

} // namespace gpuq::cli
