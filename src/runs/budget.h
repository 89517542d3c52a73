// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "runs/query_status.h"

#include <chrono>
#include <string>
#include <string_view>

/// A budget: the GPU-hours that all runs and sweeps started with the same `GPUQ_BUDGET=NAME:HOURS`
/// may use together. The GPU time of active ones is reserved until their time limits, so the budget
/// can't be exceeded by runs that are active at the same time.
namespace gpuq {

struct Budget {
    std::string name;
    std::chrono::seconds limit{0}; ///< GPU time
    bool operator==(const Budget&) const = default;
};
/// `agent:8`, `agent:0.5`: hours. `usage`.
Result<Budget> parse_budget(std::string_view text);

/// GPU time of a budget's members.
struct BudgetUse {
    std::chrono::seconds limit{0};    ///< the lower of the stated limit and the one first stated
    std::chrono::seconds used{0};     ///< by those that have ended
    std::chrono::seconds reserved{0}; ///< by the others: the most that they can use in all
    std::chrono::seconds left() const { return limit - used - reserved; }
};

/// The GPU time that a run of this request can use at most, over all its links.
std::chrono::seconds most_gpu_time(const Request& request);

/// `1.5`, in hours.
std::string hours_text(std::chrono::seconds time);

/// Makes a run or sweep a member of the budget, or changes the most that it can use. The first call
/// for a budget records its limit, which no later one raises. `denied` with the figures if it would
/// exceed the limit; nothing has changed then. Two calls at the same time may both be denied, but
/// never both exceed the limit. At most one query to Slurm, for members without a fresh heartbeat.
Result<void> charge(const StatusSources& sources, const Budget& budget, const RunKey& key,
                    std::chrono::seconds most);

/// Undoes the first charge() of a run that was not started after all.
void discharge(Store& store, const Budget& budget, const RunKey& key);

/// The use and the reservations. A member whose use is not known counts with all it could use.
Result<BudgetUse> use_of(const StatusSources& sources, const Budget& budget);

} // namespace gpuq
