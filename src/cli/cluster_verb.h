// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq cluster up|down|status|env`
extern const Verb k_cluster_verb;

} // namespace gpuq::cli
