// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq keepalive [RUN]`: shows the state of the Kerberos tickets of runs.
extern const Verb k_keepalive_verb;

} // namespace gpuq::cli
