// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/run_options.h"
#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq run`: a program on a GPU now, its output here, its exit status ours.
extern const Verb k_run_verb;

/// What `gpuq run` and `gpuq shell` do with their options, from the queues to the exit status.
Result<int> run_with(Invocation& invocation, RunOptions options, bool shell);

} // namespace gpuq::cli
