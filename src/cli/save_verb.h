// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq save`: makes a running program write a checkpoint and continue.
extern const Verb k_save_verb;

} // namespace gpuq::cli
