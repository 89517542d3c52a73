// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/code_diff.h"
#include "cli/queries/code_snapshot.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/comparison_text.h"
#include "core/layout.h"
#include "core/strings.h"
#include "runs/query_status.h"
#include "sweeps/arguments.h"
#include "sweeps/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

using report::Json;

constexpr std::array k_options = {
    Option{0, "commit", "", "compare the code with the git commit that it was based on"},
};

/// A run or sweep, and the snapshot of its code.
struct Side {
    std::string name;               ///< as typed
    std::optional<RunKey> run;      ///< unset: a sweep
    std::optional<RunStatus> sweep; ///< with its request, or that of one of its tries
    snapshots::Manifest code;
};

/// The program of a try with its values. A parameter that no argument contains is a variable.
Result<Run> run_of_try(Store& store, const SweepTarget& target)
{
    const sweeps::Sweep& sweep = target.sweep;
    Run run = sweep.run;
    if (!target.number) {
        return run;
    }
    sweeps::Board board(store, run.key);
    TRY(board.refresh());
    const sweeps::Values& values = board.tries().at(*target.number - 1).values;
    auto& program = run.request.program;
    const auto unused = sweeps::unused_parameters(program, sweep.parameters);
    for (std::size_t i = 0; i < sweep.parameters.size(); ++i) {
        if (std::find(unused.begin(), unused.end(), sweep.parameters[i]) != unused.end()) {
            run.request.setup.env.emplace_back("GPUQ_PARAM_" + sweep.parameters[i], values.at(i));
        }
    }
    program = sweeps::arguments_of_try(program, sweep.parameters, values);
    return run;
}

Result<Side> side(Services& services, Store& store, const std::string& name)
{
    Side found{name, std::nullopt, std::nullopt, {}};
    TRY_ASSIGN(const auto sweep, find_sweep_target(store, name));
    std::string reference;
    if (sweep) {
        reference = layout::sweep_snapshot(sweep->sweep.run.key);
        found.sweep = RunStatus{sweep->sweep.run.key};
        TRY_ASSIGN(found.sweep->run, run_of_try(store, *sweep));
    } else {
        TRY_ASSIGN(found.run, find_supervised(services, store, name, "diff",
                                              "no snapshot of its code was taken"));
        reference = layout::snapshot(*found.run);
    }
    TRY_ASSIGN(auto code, find_snapshot(store, reference));
    if (!code) {
        return fail(Error::Kind::missing,
                    fmt::format("{}: no snapshot of its code was taken; gpuq run --snapshot takes "
                                "one",
                                name));
    }
    found.code = *std::move(code);
    return found;
}

std::string_view word(FileChange::Kind kind)
{
    switch (kind) {
    case FileChange::Kind::changed:
        return "changed";
    case FileChange::Kind::added:
        return "added";
    case FileChange::Kind::removed:
        return "removed";
    }
    return "changed";
}

/// The settings that differ between two runs.
std::optional<Comparison> settings_of(Services& services, Store& store,
                                      const std::vector<Side>& sides)
{
    if (sides.size() != 2 || sides[0].name == sides[1].name ||
        (sides[0].run && sides[0].run == sides[1].run)) {
        return std::nullopt;
    }
    std::vector<RunToCompare> runs;
    for (const Side& side : sides) {
        runs.push_back(
            {side.run ? query_run(status_sources(services, store), *side.run) : *side.sweep,
             {},
             {}});
    }
    return compare(runs, services.clock().now());
}

Result<void> print_settings(const Comparison& comparison, const std::vector<Side>& sides,
                            Invocation& invocation)
{
    Globals globals = invocation.globals;
    globals.columns.clear();
    for (report::Table& table : settings_tables(comparison)) {
        for (std::size_t i = 0; i < sides.size() && i + 1 < table.columns.size(); ++i) {
            if (!sides[i].run) {
                report::Column& column = table.columns[i + 1]; // a sweep has no job
                column.name = column.title = sides[i].name;
            }
        }
        TRY(print_table(table, globals, invocation.services));
        TRY(print_text("\n"));
    }
    return {};
}

Result<void> print_changes(const std::vector<FileChange>& changes)
{
    for (const FileChange& change : changes) {
        if (change.diff.empty()) {
            TRY(print_line(change.kind == FileChange::Kind::changed
                               ? change.path + ": only its permissions differ"
                               : fmt::format("{}: {}", change.path, word(change.kind))));
        }
        for (const std::string_view line : fields(change.diff, "\n")) {
            TRY(print_line(line));
        }
    }
    return {};
}

Result<int> diff(Invocation& invocation)
{
    const auto& names = invocation.arguments;
    if (names.empty() || names.size() > 2) {
        return fail(Error::Kind::usage, "which runs? gpuq diff RUN compares its code with the "
                                        "current files, gpuq diff RUN RUN two runs");
    }
    const bool with_commit = invocation.options.has("commit");
    if (with_commit && names.size() == 2) {
        return fail(Error::Kind::usage, "--commit: one run at a time");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    std::vector<Side> sides;
    for (const std::string& name : names) {
        TRY_ASSIGN(Side one, side(invocation.services, *store, name));
        sides.push_back(std::move(one));
    }
    TRY_ASSIGN(const auto changes, with_commit
                                       ? code_diff_to_commit(*store, sides[0].code)
                                       : code_diff(*store, sides[0].code,
                                                   sides.size() == 2 ? &sides[1].code : nullptr));
    const auto comparison = settings_of(invocation.services, *store, sides);
    if (invocation.globals.json) {
        Json::Elements files;
        for (const FileChange& change : changes) {
            files.push_back(Json::object(
                {{"path", change.path}, {"change", word(change.kind)}, {"diff", change.diff}}));
        }
        TRY(print_text(
            report::json_document({{"runs", Json::array(names)},
                                   {"settings", comparison ? settings_json(*comparison) : Json()},
                                   {"files", Json::array(std::move(files))}})));
        return 0;
    }
    if (comparison) {
        TRY(print_settings(*comparison, sides, invocation));
    }
    TRY(print_changes(changes));
    return 0;
}

} // namespace

const Verb k_diff_verb{"diff", "gpuq diff [--commit] RUN [RUN]",
                       "code and settings that differ between two runs, or from the current files",
                       diff, k_options};

} // namespace gpuq::cli
