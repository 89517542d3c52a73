// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// Adds the global options among `options`; those given later take precedence. `usage`.
Result<void> take_globals(const Options& options, Globals& globals);

} // namespace gpuq::cli
