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
    std::string name;          ///< as typed
    std::optional<RunKey> run; ///< unset: a sweep
    snapshots::Manifest code;
};

Result<Side> side(Services& services, Store& store, const std::string& name)
{
    Side found{name, std::nullopt, {}};
    TRY_ASSIGN(const auto sweep, find_sweep_target(store, name));
    std::string reference;
    if (sweep) {
        reference = layout::sweep_snapshot(sweep->sweep.run.key);
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
    if (sides.size() != 2 || !sides[0].run || !sides[1].run || sides[0].run == sides[1].run) {
        return std::nullopt;
    }
    const RunStatuses statuses =
        query_status(status_sources(services, store), {*sides[0].run, *sides[1].run});
    std::vector<RunToCompare> runs;
    for (const RunStatus& status : statuses.runs) {
        runs.push_back({status, {}, {}});
    }
    return compare(runs, services.clock().now());
}

Result<void> print_settings(const Comparison& comparison, Invocation& invocation)
{
    Globals globals = invocation.globals;
    globals.columns.clear();
    for (const report::Table& table : settings_tables(comparison)) {
        TRY(print_table(table, globals, invocation.services));
        TRY(print_text("\n"));
    }
    return {};
}

Result<void> print_changes(const std::vector<FileChange>& changes)
{
    for (const FileChange& change : changes) {
        if (change.diff.empty()) {
            TRY(print_line(change.path + (change.kind == FileChange::Kind::removed
                                              ? ": removed"
                                              : ": only its permissions differ")));
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
        TRY(print_settings(*comparison, invocation));
    }
    TRY(print_changes(changes));
    return 0;
}

} // namespace

const Verb k_diff_verb{"diff", "gpuq diff [--commit] RUN [RUN]",
                       "code and settings that differ between two runs, or from the current files",
                       diff, k_options};

} // namespace gpuq::cli
