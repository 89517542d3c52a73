// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/queues/expected_start.h"
#include "runs/queues/forecast.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/reservations.h"

#include <optional>
#include <string>
#include <vector>

/// Text and JSON of free GPUs. Pure.
namespace gpuq::cli {

/// A waiting job of the user's own, and when it starts.
struct OwnWait {
    JobId job;
    std::string name;
    std::optional<Time> planned; ///< by Slurm
    StartEstimate estimate;      ///< if Slurm has no plan for it
    StartForecast forecast;
};

/// When a run would start that was submitted now (--for).
struct RequestForecast {
    std::string summary; ///< `2 GPUs for 2 h in queue gpu`
    Job job;             ///< as it would be submitted
    StartForecast forecast;
    int ahead = 0;       ///< jobs that wait for the same nodes
    double observed = 0; ///< number of jobs whose ends the forecast is based on
};

/// The result of `gpuq free`.
struct FreeGpus {
    std::string cluster;
    std::vector<Partition> partitions;
    std::vector<GpuPool> pools;
    std::optional<std::vector<NextFree>> next;         ///< with --next
    std::optional<WaitingLine> waiting;                ///< with --next, if no jobs are hidden
    std::vector<OwnWait> own_waiting;                  ///< with --next, eligible jobs only
    std::optional<std::vector<ReservedGpus>> reserved; ///< now or later; unset: unknown
    std::optional<RequestForecast> request;            ///< with --for
};

/// Whether a GPU is free now: `yes: 6 k80 in queue calibration (up to 2 h), at most 4 on one node`.
std::string free_answer(const FreeGpus& found, Time now);
/// The same for less room, the longest first: `yes: 6 k80 in queue calibration; 3 jobs wait`,
/// `yes: 6 k80; 3 jobs wait`, `no, next by 14:20; 3 jobs wait`.
std::vector<std::string> short_free_answers(const FreeGpus& found, Time now);

/// Columns model, queues, total, free, used, down, blocked; and shares if GPUs are shared.
report::Table free_table(const FreeGpus& found);

/// Columns at, in, gpus, model, queues, node, job; and shares if a job holds some.
report::Table next_table(const FreeGpus& found, Time now);

/// A line for each eligible waiting job of the user's own: when it starts, and the basis for that.
std::vector<std::string> own_lines(const FreeGpus& found, Time now);

/// With --for: when the run would start, and the basis for that.
std::vector<std::string> request_lines(const RequestForecast& request, Time now);

/// The free shares: `2 of 4 shards`; empty if the GPUs are not shared.
std::string shares_text(const GpuPool& pool);

/// For --json. Null if the GPUs are not shared.
report::Json shares_json(const std::optional<PoolShares>& shares);

/// For --json.
report::Json::Members free_document(const FreeGpus& found, Time now);

} // namespace gpuq::cli
