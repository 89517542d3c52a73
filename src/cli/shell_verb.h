// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq shell`: a login shell on a GPU that survives a lost connection.
extern const Verb k_shell_verb;

} // namespace gpuq::cli
