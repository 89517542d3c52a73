// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "sim/accounted.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Waits compared with the targets of a policy, as text, CSV, JSON and metrics. Pure.
namespace gpuq::cli {

/// A figure of waits: its name as a column and a member, and the quantile it represents.
struct WaitFigure {
    std::string_view name;
    std::string_view quantile;
    int percent;
    std::optional<sim::Seconds> sim::WaitFigures::*wait;
};
constexpr std::array<WaitFigure, 3> k_wait_figures{{{"p50", "0.5", 50, &sim::WaitFigures::p50},
                                                    {"p95", "0.95", 95, &sim::WaitFigures::p95},
                                                    {"max", "1", 100, &sim::WaitFigures::max}}};

/// The queue's target for this figure, or null.
const sim::KeptTarget* target_of(const sim::QueueWaits& queue, const WaitFigure& figure);

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
