// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/show_comparison.h"

#include "cli/base/page_output.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/pages/comparison_page.h"
#include "cli/queries/find_training.h"
#include "cli/queries/plain_target.h"
#include "cli/render/comparison_text.h"
#include "runs/insight/samples.h"
#include "runs/query_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {
namespace {

Result<void> check_count(std::size_t count)
{
    if (count < 2) {
        return fail(Error::Kind::usage,
                    "which runs? gpuq show --compare RUN RUN...; gpuq ls --all lists them");
    }
    if (count > Comparison::k_most_runs) {
        return fail(Error::Kind::usage, fmt::format("--compare: at most {} runs, not {}",
                                                    Comparison::k_most_runs, count));
    }
    return {};
}

/// In the order of the arguments. `usage` for a plain job and for a run that is named twice.
Result<std::vector<RunKey>> find_runs(Services& services, Store& store,
                                      const std::vector<std::string>& arguments)
{
    std::vector<RunKey> keys;
    for (const std::string& argument : arguments) {
        TRY_ASSIGN(const RunKey key,
                   find_supervised(services, store, argument, "show --compare",
                                   "its settings and metrics are not known; gpuq show {0} shows "
                                   "its state"));
        const auto same = std::find(keys.begin(), keys.end(), key);
        if (same != keys.end()) {
            return fail(Error::Kind::usage,
                        fmt::format("--compare: {} and {} are the same run",
                                    arguments[static_cast<std::size_t>(same - keys.begin())],
                                    argument));
        }
        keys.push_back(key);
    }
    return keys;
}

/// Queries Slurm at most once for all runs.
WholeComparison find_out(Services& services, Store& store, const std::vector<RunKey>& keys)
{
    const RunStatuses statuses = query_status(status_sources(services, store), keys);
    const Time now = services.clock().now();
    std::vector<RunToCompare> runs;
    for (const RunStatus& status : statuses.runs) {
        runs.push_back({status, gpu_time_so_far(store, status, now),
                        find_training(services, store, status, Apart::yes).training});
    }
    WholeComparison whole{compare(runs, now), {}};
    if (!statuses.slurm_silent.empty()) {
        whole.warnings.push_back(statuses.slurm_silent);
    }
    return whole;
}

Result<void> print_summary(const WholeComparison& whole, Invocation& invocation, Time now)
{
    Globals globals = invocation.globals;
    globals.columns.clear();
    TRY(print_table(compared_runs_table(whole.comparison, now), globals, invocation.services));
    for (const auto& tables :
         {settings_tables(whole.comparison), metrics_tables(whole.comparison)}) {
        for (const report::Table& table : tables) {
            TRY(print_text("\n"));
            TRY(print_table(table, globals, invocation.services));
        }
    }
    std::vector<std::string> lines;
    for (const ComparedMetric& metric : whole.comparison.metrics) {
        lines.push_back(best_text(whole.comparison, metric));
    }
    const auto notes = comparison_notes(whole.comparison);
    lines.insert(lines.end(), notes.begin(), notes.end());
    std::erase(lines, "");
    if (!lines.empty()) {
        TRY(print_text("\n"));
    }
    for (const std::string& line : lines) {
        TRY(print_line(line));
    }
    return {};
}

} // namespace

Result<int> show_comparison(Invocation& invocation)
{
    TRY(check_count(invocation.arguments.size()));
    TRY_ASSIGN(const PageOutput output, PageOutput::of(invocation));
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const std::vector<RunKey> keys,
               find_runs(invocation.services, *store, invocation.arguments));
    const WholeComparison whole = find_out(invocation.services, *store, keys);
    const Time now = invocation.services.clock().now();
    return output.write({[&] { return comparison_page(whole, now); },
                         [&] { return comparison_document(whole, now); },
                         [&] { return print_summary(whole, invocation, now); }, whole.warnings});
}

} // namespace gpuq::cli
