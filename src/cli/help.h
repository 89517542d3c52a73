// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

#include <string>

namespace gpuq::cli {

/// What `gpuq help` prints: every verb in a line, the global options.
std::string help_text();

/// What `gpuq help VERB` and `gpuq VERB --help` print.
std::string help_text(const Verb& verb);

} // namespace gpuq::cli
