// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "sim/accounted.h"

#include <cstddef>
#include <string>
#include <vector>

/// Waits compared with the targets of a policy, as text, CSV, JSON and metrics. Pure.
namespace gpuq::cli {

/// The result of `gpuq usage --targets`.
struct TargetResults {
    Time since; ///< jobs submitted since then
    Time to;
    std::string policy; ///< its file
    std::vector<sim::QueueWaits> queues;
    std::size_t withdrawn = 0;
};

/// The number of missed targets.
std::size_t missed(const TargetResults& results);

/// One row per queue, followed by one per GPU model if it has several; `>=` precedes a figure that
/// may still grow, `?` one that is based on too few jobs.
report::Table targets_table(const TargetResults& results);

/// RFC 4180 with a header line; seconds, empty if unknown.
std::string targets_csv(const TargetResults& results);

/// For --json.
report::Json::Members targets_document(const TargetResults& results);

/// Prometheus' text format for node_exporter's textfile collector. Unknown values have no sample.
std::string targets_metrics(const TargetResults& results);

} // namespace gpuq::cli
