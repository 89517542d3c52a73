// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq help [VERB]`
extern const Verb k_help_verb;

} // namespace gpuq::cli
