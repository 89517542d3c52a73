// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// Runs one gpuq command line: parses the global options, dispatches to the verb or to help, and
/// returns the documented exit status. Prints errors to stderr, one line each with the prefix
/// `gpuq: `. Exceptions propagate to the caller.
int run_application(int argc, char** argv, Services& services);

} // namespace gpuq::cli
