// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// `gpuq policy probe [NODE]`: runs the probe that the policy in force defines for this node
/// (default: $SLURMD_NODENAME, else this machine). Prints `idle` if it exits with 0, `busy: REASON`
/// if it exits with another status, runs for more than 30 s or can't be run, and a message if no
/// policy is in force or the node has no probe. Returns 0 in all of these cases: gpuq-node-probe,
/// which slurmd runs, evaluates the output.
Result<int> policy_probe(Invocation& invocation);

} // namespace gpuq::cli
