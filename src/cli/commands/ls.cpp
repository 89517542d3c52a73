// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/find_credentials.h"
#include "cli/queries/kept_forecasts.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/listed_runs.h"
#include "cli/render/run_table.h"
#include "core/strings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{'a', "all", "", "list every run on disk, not only active and recent ones"}};

/// With --columns, those of the runs' columns that sweeps have as well.
Result<void> print_sweeps(const report::Table& table, Globals globals, Services& services)
{
    std::vector<std::string_view> shared;
    for (const std::string_view name : split(globals.columns, ",")) {
        if (report::only(table, name)) {
            shared.push_back(name);
        }
    }
    if (table.rows.empty() || (shared.empty() && !globals.columns.empty())) {
        return {};
    }
    globals.columns = fmt::format("{}", fmt::join(shared, ","));
    return print_table(table, globals, services);
}

Result<int> ls(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("ls: unexpected argument '{}'", invocation.arguments.front()));
    }
    Services& services = invocation.services;
    const bool want_all = invocation.options.has("all");
    const Time now = services.clock().now();
    TRY_ASSIGN(Store* const store, services.store());
    TRY_ASSIGN(const std::vector<RunKey> keys, ListedRuns().read(*store, want_all, now));
    RunStatuses statuses = query_status(status_sources(services, *store), keys);
    std::erase_if(statuses.runs, is_nothing);
    TRY_ASSIGN(const auto sweeps, listed_sweeps(services, *store, want_all));
    if (!want_all) { // their sweeps have a line each
        std::erase_if(statuses.runs,
                      [](const RunStatus& run) { return run.run && run.run->request.sweep; });
    }
    const PlainJobs plain = find_plain_jobs(services, *store, statuses, now);
    const std::string unknown = age_text(plain, now);
    const auto short_of = shortages(find_credentials(services, *store, statuses.runs), now);
    statuses.runs = merged(std::move(statuses.runs), plain.jobs);
    if (invocation.globals.json) {
        auto document =
            run_list(statuses, short_of, now, unknown, kept_forecasts(*store, statuses.runs));
        add_sweeps(document, sweeps);
        TRY(print_text(report::json_document(document)));
        return 0;
    }
    if (!statuses.slurm_silent.empty()) {
        print_message(fmt::format("{}; showing the state on disk, without plain Slurm jobs",
                                  statuses.slurm_silent));
    } else if (!unknown.empty() && !invocation.globals.quiet) {
        print_message(unknown);
    }
    const report::Table table = run_table(statuses.runs, now);
    TRY_ASSIGN([[maybe_unused]] const auto checked,
               report::only(table, invocation.globals.columns));
    TRY(print_sweeps(sweeps_table(sweeps), invocation.globals, services));
    if (statuses.runs.empty() && !sweeps.empty()) {
        return 0;
    }
    if (statuses.runs.empty()) {
        print_note(invocation.globals.quiet,
                   want_all
                       ? "no runs"
                       : "no runs, and none ended within a day; gpuq ls --all lists older ones");
        return 0;
    }
    TRY(print_table(table, invocation.globals, services));
    if (!invocation.globals.quiet) {
        for (const std::string& text : short_of) {
            print_message(text);
        }
    }
    return 0;
}

} // namespace

const Verb k_ls_verb{"ls", "gpuq ls [--all]", "list your runs and plain Slurm jobs", ls, k_options};

} // namespace gpuq::cli
