// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/expected_start.h"
#include "runs/free_gpus.h"

#include <optional>
#include <string>
#include <vector>

/// Free GPUs as people and scripts are shown them. Pure.
namespace gpuq::cli {

/// A job of the user's own that waits, and when it starts.
struct OwnWait {
    JobId job;
    std::string name;
    std::optional<Time> planned; ///< by Slurm
    StartEstimate estimate;      ///< where it has no plan
};

/// All that `gpuq free` found out.
struct FreeGpus {
    std::string cluster;
    std::vector<Partition> partitions;
    std::vector<GpuPool> pools;
    std::optional<std::vector<NextFree>> next; ///< with --next
    std::optional<WaitingLine> waiting;        ///< with --next, when nobody's jobs are hidden
    std::vector<OwnWait> own_waiting;          ///< with --next, those that are in line
};

/// Is there one, now? `yes: 6 k80 in queue calibration (up to 2 h), at most 4 on one node`.
std::string free_answer(const FreeGpus& found, Time now);

/// Columns model, queues, total, free, used, down, blocked.
report::Table free_table(const FreeGpus& found);

/// Columns at, in, gpus, model, queues, node, job.
report::Table next_table(const FreeGpus& found, Time now);

/// A line for each job of the user's own that is in line: when it starts, and on what that is
/// based.
std::vector<std::string> own_lines(const FreeGpus& found, Time now);

/// For --json.
report::Json::Members free_document(const FreeGpus& found);

} // namespace gpuq::cli
