// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq connect`: carries an ssh connection into a run (ProxyCommand).
extern const Verb k_connect_verb;

} // namespace gpuq::cli
