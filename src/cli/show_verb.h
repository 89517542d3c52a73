// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq show RUN`: prints everything about one run.
extern const Verb k_show_verb;

} // namespace gpuq::cli
