// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

extern const Verb k_policy_verb;

} // namespace gpuq::cli
