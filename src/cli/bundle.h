// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "report/tar.h"
#include "runs/status.h"

#include <vector>

namespace gpuq::cli {

enum class Logs { last_lines, left_out };

/// What a helper needs to know about a run: its records, the end of its output, what Slurm says of
/// its job, gpuq doctor. Every file has gone through a Redactor (core/redact.h) that knows the
/// run's environment and this process's.
std::vector<report::ArchiveFile> bundle_of(Doors& doors, Store& store, const RunStatus& status,
                                           Logs logs);

} // namespace gpuq::cli
