// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

extern const Verb k_serve_verb;

} // namespace gpuq::cli
