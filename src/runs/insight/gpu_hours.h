// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/nodes.h"
#include "ports/use_records.h"
#include "telemetry/sample.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// GPU-hours computed from jobs' usage records. Pure.
namespace gpuq {

enum class UseBy { user, account, lab, queue, model };

/// `user`, `account`, `lab`, `queue`, `model`.
std::string_view word(UseBy by);

/// Parses `user,model`. `usage` names the invalid keyword and lists the valid ones.
Result<std::vector<UseBy>> parse_use_by(std::string_view typed);

/// The sum of all jobs with the same names.
struct UseRow {
    std::vector<std::string> names; ///< one for each of `by`; empty model or lab: not in accounting
    int jobs = 0;                   ///< a requeued job counts once
    /// Elapsed time x allocated GPUs, or x the fraction of a GPU: busy, idle and unknown.
    std::int64_t gpu_seconds = 0;
    std::int64_t busy = 0;
    std::int64_t idle = 0;
    /// Of the jobs that started within the time span; unset: too few (known_percentile).
    std::optional<std::chrono::seconds> wait_p50{}, wait_p95{};

    std::int64_t unknown() const { return gpu_seconds - busy - idle; }
    bool operator==(const UseRow&) const = default;
};

/// Sets the number of shares of a GPU, which accounting does not know, to the smallest among
/// `nodes`; unset, a share counts as a whole GPU.
void set_shares_per_gpu(std::vector<UseRecord>& records, const std::vector<Node>& nodes);

/// How a job's GPUs were used; the sum is exactly the allocation in accounting. All of it is
/// unknown if the job noted no use, is only partly in the time span or had a share: others used the
/// same GPU.
GpuTime gpu_time_of(const UseRecord& record);

/// Rows in descending order of GPU time. By model, a job counts for each of its models, and GPUs
/// without a model form a row of their own; if a job has several models, their use is unknown.
std::vector<UseRow> gpu_hours(const std::vector<UseRecord>& records, const std::vector<UseBy>& by);

} // namespace gpuq
