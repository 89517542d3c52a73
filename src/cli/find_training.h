// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/training_text.h"
#include "cli/verb.h"

namespace gpuq::cli {

/// Whether the person's folder, which may be on a file system that hangs, is read in a process of
/// its own: not from a process of several threads, which must not fork.
enum class Apart { no, yes };

/// How the training of a run goes, out of its files and its output.
WholeTraining find_training(Doors& doors, Store& store, const RunStatus& status, Apart apart);

} // namespace gpuq::cli
