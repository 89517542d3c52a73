// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq why RUN`: prints why it waits, until when, and possible remedies.
extern const Verb k_why_verb;

} // namespace gpuq::cli
