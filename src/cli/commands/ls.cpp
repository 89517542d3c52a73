// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/look_doors.h"
#include "cli/base/say.h"
#include "cli/base/table_output.h"
#include "cli/queries/find_credentials.h"
#include "cli/queries/plain_target.h"
#include "cli/render/listed_runs.h"
#include "cli/render/run_table.h"

#include <fmt/format.h>

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{'a', "all", "", "list every run on disk, not only active and recent ones"}};

Result<int> ls(Invocation& invocation)
{
    if (!invocation.words.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("ls: unexpected argument '{}'", invocation.words.front()));
    }
    Doors& doors = invocation.doors;
    const bool want_all = invocation.options.has("all");
    const Time now = doors.clock().now();
    TRY_ASSIGN(Store* const store, doors.store());
    TRY_ASSIGN(const std::vector<RunKey> keys, listed_runs(*store, want_all, now));
    Looked looked = look(look_doors(doors, *store), keys);
    std::erase_if(looked.runs, is_nothing);
    const PlainJobs plain = find_plain_jobs(doors, *store, looked, now);
    const std::string unknown = age_in_words(plain, now);
    const auto short_of = shortages(find_credentials(doors, *store, looked.runs), now);
    looked.runs = merged(std::move(looked.runs), plain.jobs);
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(run_list(looked, short_of, now, unknown))));
        return 0;
    }
    if (!looked.slurm_silent.empty()) {
        say(fmt::format("{}; showing the state on disk, without plain Slurm jobs",
                        looked.slurm_silent));
    } else if (!unknown.empty() && !invocation.globals.quiet) {
        say(unknown);
    }
    const report::Table table = run_table(looked.runs, now);
    TRY_ASSIGN([[maybe_unused]] const auto checked,
               report::only(table, invocation.globals.columns));
    if (looked.runs.empty()) {
        if (!invocation.globals.quiet) {
            say(want_all ? "no runs"
                         : "no runs, and none ended within a day; gpuq ls --all lists older ones");
        }
        return 0;
    }
    TRY(print_table(table, invocation.globals, doors));
    if (!invocation.globals.quiet) {
        for (const std::string& text : short_of) {
            say(text);
        }
    }
    return 0;
}

} // namespace

const Verb k_ls_verb{"ls", "gpuq ls [--all]", "list your runs and plain Slurm jobs", ls, k_options};

} // namespace gpuq::cli
