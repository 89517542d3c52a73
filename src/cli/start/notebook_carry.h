// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/policy_ops/in_force.h"
#include "core/result.h"

#include <chrono>
#include <vector>

namespace gpuq::cli {

/// The time of --idle; 0: never. By default, and at most, the shortest of `rules`. `usage` if it is
/// invalid, `denied` if it is longer.
Result<std::chrono::seconds> notebook_idle(const Options& options,
                                           const std::vector<NotebookIdle>& rules = {});

/// The part of `gpuq notebook` on the login host (--carry): finds the notebook of the directory or
/// starts one, waits until it listens, and carries its connections over the standard streams. Its
/// first line of output is the address (runs/notebook.h).
Result<int> carry_notebook_of(Invocation& invocation);

} // namespace gpuq::cli
