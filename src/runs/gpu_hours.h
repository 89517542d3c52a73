// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/use_records.h"
#include "telemetry/sample.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// GPU-hours out of what jobs had. Pure.
namespace gpuq {

enum class UseBy { user, account, queue, model };

/// `user`, `account`, `queue`, `model`.
std::string_view word(UseBy by);

/// `user,model`. `usage` names what is wrong and what there is.
Result<std::vector<UseBy>> parse_use_by(std::string_view words);

/// What everything with the same names had.
struct UseRow {
    std::vector<std::string>
        names;                    ///< one for each of `by`; a model may be empty: not accounted for
    int jobs = 0;                 ///< a requeued job once
    std::int64_t gpu_seconds = 0; ///< elapsed time x allocated GPUs: busy, idle and unknown ones
    std::int64_t busy = 0;
    std::int64_t idle = 0;

    std::int64_t unknown() const { return gpu_seconds - busy - idle; }
    bool operator==(const UseRow&) const = default;
};

/// What the GPUs of a job did, exactly as much as accounting says that they were allocated. All of
/// it is unknown of a job that has noted nothing, and of one that lies only partly in the span.
GpuTime gpu_time_of(const UseRecord& record);

/// The most first. By model, a job counts for each model that it had, GPUs without one apart; what
/// each of several did is unknown.
std::vector<UseRow> gpu_hours(const std::vector<UseRecord>& records, const std::vector<UseBy>& by);

} // namespace gpuq
