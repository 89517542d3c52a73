// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/render/training_text.h"
#include "runs/insight/progress.h"

namespace gpuq::cli {

/// Whether to read the user's directory, which may be on a file system that hangs, in a separate
/// process. `no` for a multi-threaded process, which must not fork.
enum class Apart { no, yes };

/// The training progress of a run, from its files and its output. `earlier`: the curves of ended
/// links from the calls before; null: they are read.
WholeTraining find_training(Services& services, Store& store, const RunStatus& status, Apart apart,
                            EarlierCurves* earlier = nullptr);

/// The absolute paths of the event files (TensorBoard) that a run has written, newest first.
std::vector<std::string> find_event_files(Services& services, Store& store, const RunStatus& status,
                                          Apart apart);

} // namespace gpuq::cli
