// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq attach`: back to a run, from the first byte not yet shown; its exit status ours.
extern const Verb k_attach_verb;

} // namespace gpuq::cli
