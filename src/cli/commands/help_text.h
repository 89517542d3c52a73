// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <string>

namespace gpuq::cli {

/// The output of `gpuq help`: one line per verb, and the global options.
std::string help_text();

/// The output of `gpuq help VERB` and `gpuq VERB --help`.
std::string help_text(const Verb& verb);

} // namespace gpuq::cli
