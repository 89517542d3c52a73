// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq completion bash|zsh|fish`
extern const Verb k_completion_verb;

} // namespace gpuq::cli
