// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq rehearse`: before days are spent, whether a program saves when it is told, and goes on
/// after a kill.
extern const Verb k_rehearse_verb;

} // namespace gpuq::cli
