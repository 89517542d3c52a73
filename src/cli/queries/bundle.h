// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "report/tar.h"
#include "runs/status.h"

#include <vector>

namespace gpuq::cli {

enum class Logs { last_lines, left_out };

/// The files of a support archive for a run: its records, the end of its output, Slurm's
/// description of its job, and the findings of gpuq doctor. Each file has passed through a Redactor
/// (core/redact.h) that knows the environments of the run and of this process.
std::vector<report::ArchiveFile> bundle_of(Services& services, Store& store,
                                           const RunStatus& status, Logs logs);

} // namespace gpuq::cli
