// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// One use of gpuq, from the words typed to the exit status: global options, the verb, its options,
/// help. Errors go to stderr, a line each, `gpuq: ` in front, and become the contract's status.
/// Exceptions are the caller's.
int run_application(int argc, char** argv, Doors& doors);

} // namespace gpuq::cli
