// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq rehearse`: tests in minutes whether a program saves when asked to, and resumes after a
/// kill.
extern const Verb k_rehearse_verb;

} // namespace gpuq::cli
