// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq stop`: ends runs, or withdraws them from the queue.
extern const Verb k_stop_verb;

} // namespace gpuq::cli
