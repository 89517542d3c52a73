// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq attach`: reconnects to a run from the first byte not yet shown; exits with the run's
/// status.
extern const Verb k_attach_verb;

} // namespace gpuq::cli
