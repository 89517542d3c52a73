// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq run`: a program on a GPU now, its output here, its exit status ours.
extern const Verb k_run_verb;

} // namespace gpuq::cli
