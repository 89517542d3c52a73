// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq logs`: what a run has printed, from disk.
extern const Verb k_logs_verb;

} // namespace gpuq::cli
