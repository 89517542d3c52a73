// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq policy probe [NODE]`: runs the probe that the policy in force has for this node, otherwise
/// $SLURMD_NODENAME, else this machine. Prints `idle` when it says so by 0; `busy: why` when it
/// does not, takes longer than 30 s or can't be run; nothing when nobody is to be asked. 0 in all
/// three cases: gpuq-node-probe, which slurmd runs, acts on the word.
Result<int> policy_probe(Invocation& invocation);

} // namespace gpuq::cli
