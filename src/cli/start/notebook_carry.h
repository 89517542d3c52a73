// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/result.h"

#include <chrono>

namespace gpuq::cli {

/// The time of --idle; 0: never. `usage` if it is invalid.
Result<std::chrono::seconds> notebook_idle(const Options& options);

/// The part of `gpuq notebook` on the login host (--carry): finds the notebook of the directory or
/// starts one, waits until it listens, and carries its connections over the standard streams. Its
/// first line of output is the address (runs/notebook.h).
Result<int> carry_notebook_of(Invocation& invocation);

} // namespace gpuq::cli
