// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// The commands that start runs, each defined in the file of its name.
extern const Verb k_run_verb;
extern const Verb k_again_verb;
extern const Verb k_sweep_verb;
extern const Verb k_shell_verb;
extern const Verb k_notebook_verb;
extern const Verb k_rehearse_verb;
extern const Verb k_tensorboard_verb;

} // namespace gpuq::cli
