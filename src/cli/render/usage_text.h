// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "report/json.h"
#include "report/table.h"
#include "runs/insight/gpu_hours.h"
#include "runs/insight/use_advice.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Text, CSV, JSON and page of GPU-hours. Pure, but for the local time zone.
namespace gpuq::cli {

/// The result of `gpuq usage`.
struct GpuUse {
    Time from;
    Time to;
    std::vector<UseBy> by;
    std::vector<UseRow> rows;
    UseRow total;
    std::vector<UseAdvice> advice; ///< for the user's own jobs
    /// Jobs whose share of a GPU has an unknown size, and count as if they had all of it.
    int jobs_of_unknown_size = 0;
    bool knows_nodes = true; ///< false: slurmctld does not respond
};

/// What `jobs_of_unknown_size` means for the sums; empty if there are none.
std::string unknown_sizes_text(const GpuUse& use);

/// Parses a time: `2026-11-01` (local midnight), `2026-11-01T16:40[:07]`, `today`, `now`, or an
/// age: `7d`, `12h`. `usage` for anything else.
Result<Time> parse_moment(std::string_view text, Time now);

/// Local midnight of the first day of the month of `now`.
Time begin_of_month(Time now);

/// `63 %`; rounded so that a part that exists is not shown as 0 or 100. `-` if there is nothing.
std::string percent_text(std::int64_t part, std::int64_t all);

/// Columns as in `by`, then jobs and hours, the busy, idle and unknown part of the hours, which add
/// up as printed, and the waits; the last row is the total.
report::Table usage_table(const GpuUse& use);

/// RFC 4180 with a header line; GPU-seconds, which add up without rounding, and seconds of waits,
/// empty if unknown.
std::string usage_csv(const GpuUse& use);

/// A page with the same rows, for reports.
std::string usage_page(const GpuUse& use);

/// For --json.
report::Json::Members usage_document(const GpuUse& use);

} // namespace gpuq::cli
