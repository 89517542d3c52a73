// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "telemetry/series.h"

#include <string>
#include <string_view>

namespace gpuq::sweeps {

/// The metric by which tries are compared: `loss:min`, `val/accuracy:max`.
struct Metric {
    std::string tag; ///< empty: the main loss
    enum class Goal { min, max } goal = Goal::min;
    bool operator==(const Metric&) const = default;
};
/// Without a goal: that of the name (telemetry/metric_direction.h), else `min`. `usage`.
Result<Metric> parse_metric(std::string_view text);
/// `loss:min`.
std::string to_text(const Metric& metric);
/// `loss`.
std::string name_of(const Metric& metric);
/// Whether `one` is better than `other`.
bool is_better(const Metric& metric, double one, double other);

/// The series of the metric: the tag itself, else the shortest tag that ends with it after a `/` or
/// `_` (`loss` finds `train/loss`). Null: none.
const telemetry::Series* series_of(const telemetry::Curves& curves, const Metric& metric);

} // namespace gpuq::sweeps
