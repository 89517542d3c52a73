// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq logs`: prints the output of a run from disk.
extern const Verb k_logs_verb;

} // namespace gpuq::cli
