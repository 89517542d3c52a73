// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/budget.h"

#include "cli/base/status_sources.h"
#include "cli/queries/sweep_query.h"

namespace gpuq::cli {

Result<std::optional<Budget>> budget_of(Services& services)
{
    const std::string text = services.variable("GPUQ_BUDGET").value_or("");
    if (text.empty()) {
        return std::optional<Budget>();
    }
    TRY_ASSIGN(Budget budget, parse_budget(text));
    return std::optional(std::move(budget));
}

Result<BudgetUse> budget_use(Services& services, Store& store, const Budget& budget)
{
    TRY(listed_sweeps(services, store, /*want_all=*/false));
    return use_of(status_sources(services, store), budget);
}

Result<void> charge_budget(Services& services, Store& store, const RunKey& key,
                           std::chrono::seconds most)
{
    TRY_ASSIGN(const auto budget, budget_of(services));
    if (!budget) {
        return {};
    }
    TRY(listed_sweeps(services, store, /*want_all=*/false));
    return charge(status_sources(services, store), *budget, key, most);
}

} // namespace gpuq::cli
