// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/free_gpus.h"

#include <optional>
#include <string>
#include <vector>

/// Free GPUs as people and scripts are shown them. Pure.
namespace gpuq::cli {

/// All that `gpuq free` found out.
struct FreeGpus {
    std::string cluster;
    std::vector<Partition> partitions;
    std::vector<GpuPool> pools;
    std::optional<std::vector<NextFree>> next; ///< with --next
    std::optional<WaitingLine> waiting;        ///< with --next, when nobody's jobs are hidden
};

/// Is there one, now? `yes: 6 k80 in queue calibration (up to 2 h), at most 4 on one node`.
std::string free_answer(const FreeGpus& found, Time now);

/// Columns model, queues, total, free, used, down, blocked.
report::Table free_table(const FreeGpus& found);

/// Columns at, in, gpus, model, queues, node, job.
report::Table next_table(const FreeGpus& found, Time now);

/// For --json.
report::Json::Members free_document(const FreeGpus& found);

} // namespace gpuq::cli
