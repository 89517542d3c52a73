// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "sim/accounted.h"

#include <cstddef>
#include <string>
#include <vector>

/// Waits against the targets of a policy, as operators and their monitoring are shown them. Pure.
namespace gpuq::cli {

/// All that `gpuq usage --targets` found out.
struct TargetsLook {
    Time since; ///< jobs that were submitted from then on
    Time to;
    std::string policy; ///< the file
    std::vector<sim::QueueWaits> queues;
    std::size_t withdrawn = 0;
};

/// How many targets are missed.
std::size_t missed(const TargetsLook& look);

/// A row for each queue, then one for each of its models when it has several; `>=` stands before a
/// figure that may still grow, `?` for one of which there are too few jobs.
report::Table targets_table(const TargetsLook& look);

/// RFC 4180 with a header; seconds, empty for what is not known.
std::string targets_csv(const TargetsLook& look);

/// For --json.
report::Json::Members targets_document(const TargetsLook& look);

/// Prometheus' text format, as node_exporter's textfile collector takes it. What is not known has
/// no sample.
std::string targets_metrics(const TargetsLook& look);

} // namespace gpuq::cli
