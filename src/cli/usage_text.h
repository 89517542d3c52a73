// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "report/json.h"
#include "report/table.h"
#include "runs/gpu_hours.h"
#include "runs/use_advice.h"

#include <string>
#include <string_view>
#include <vector>

/// GPU-hours as people and scripts are shown them. Pure, but for the local time zone.
namespace gpuq::cli {

/// All that `gpuq usage` found out.
struct GpuUse {
    Time from;
    Time to;
    std::vector<UseBy> by;
    std::vector<UseRow> rows;
    UseRow total;
    std::vector<UseAdvice> advice; ///< on one's own jobs
};

/// A moment as people type it: `2026-11-01` (local midnight), `2026-11-01T16:40[:07]`, `today`,
/// `now`, or how long ago: `7d`, `12h`. `usage` for anything else.
Result<Time> parse_moment(std::string_view text, Time now);

/// Local midnight of the first day of the month of `now`.
Time begin_of_month(Time now);

/// Columns as in `by`, then jobs and hours, and of these busy, idle and unknown ones, which add up
/// to them as printed; the last row is the sum of all.
report::Table usage_table(const GpuUse& use);

/// RFC 4180 with a header; GPU-seconds, which add up without rounding.
std::string usage_csv(const GpuUse& use);

/// For --json.
report::Json::Members usage_document(const GpuUse& use);

} // namespace gpuq::cli
