// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_text.h"

#include "cli/render/run_table.h"
#include "cli/render/top_gpus.h"
#include "report/ending_text.h"
#include "report/table.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;

std::string count_text(const std::optional<int>& count)
{
    return count ? std::to_string(*count) : "?";
}

report::Table gpu_table(const Overview& overview, Time now)
{
    using Align = Column::Align;
    using Tone = Cell::Tone;
    report::Table table;
    table.columns = {{"model", "GPU"},
                     {"queues", "QUEUES", Align::left, Column::Shrink::yes},
                     {"free", "FREE", Align::right},
                     {"mine", "MINE", Align::right},
                     {"others", "OTHERS", Align::right},
                     {"down", "DOWN", Align::right, Column::Shrink::no, 2},
                     {"blocked", "BLOCKED", Align::right, Column::Shrink::no, 3},
                     {"next", "NEXT FREE BY", Align::left, Column::Shrink::no, 1}};
    for (const PoolUse& use : overview.pools) {
        const GpuPool& pool = use.pool;
        const bool is_free = pool.free.value_or(0) > 0;
        table.rows.push_back(
            {pool.model.empty() ? "GPU" : pool.model,
             fmt::format("{}", fmt::join(pool.queues, ",")),
             {count_text(pool.free), is_free ? Tone::good : Tone::plain},
             count_text(use.mine),
             count_text(of_others(use)),
             {std::to_string(pool.down), pool.down > 0 ? Tone::warning : Tone::plain},
             std::to_string(pool.blocked),
             is_free    ? "now"
             : use.next ? clock_text(*use.next, now)
                        : "?"});
    }
    return table;
}

/// With the columns that are not on request.
std::string table_text(const report::Table& table, const report::TableStyle& style)
{
    const auto shown = report::only(table, "");
    return report::to_text(shown ? *shown : table, style);
}

std::string age_text(const Overview& overview, Time now)
{
    if (!overview.at) {
        return "asking Slurm";
    }
    const auto age = std::chrono::floor<std::chrono::seconds>(now - *overview.at);
    return fmt::format("Slurm {} ago", describe(std::max(age, std::chrono::seconds(0))));
}

} // namespace

std::string top_text(const TopFound& found, Time now, std::optional<std::size_t> columns)
{
    const Overview& overview = found.overview;
    const std::string trouble = top_trouble(found);
    report::TableStyle style;
    style.width = columns;
    std::string text = fmt::format("gpuq top  {}  {}  {}\n", sanitised(overview.cluster),
                                   moment_text(now, now), age_text(overview, now));
    text += sanitised(trouble.empty() ? top_answer(overview, now) : trouble) + "\n";
    text += table_text(gpu_table(overview, now), style) + "\n";
    text += found.unlisted       ? "your runs can't be read\n"
            : found.runs.empty() ? "no runs, and none ended within a day\n"
                                 : table_text(run_table(found.runs, now), style);
    return text;
}

} // namespace gpuq::cli
