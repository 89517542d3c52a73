// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/budget.h"

#include <optional>

/// The budget of `GPUQ_BUDGET`, under which this command starts runs.
namespace gpuq::cli {

/// Nothing if the variable is not set or empty. `usage`.
Result<std::optional<Budget>> budget_of(Services& services);

/// use_of(), after the sweeps that have ended meanwhile are known.
Result<BudgetUse> budget_use(Services& services, Store& store, const Budget& budget);

/// charge(), if there is a budget.
Result<void> charge_budget(Services& services, Store& store, const RunKey& key,
                           std::chrono::seconds most);

} // namespace gpuq::cli
