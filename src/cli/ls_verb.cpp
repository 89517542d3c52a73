// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/ls_verb.h"

#include "cli/look_doors.h"
#include "cli/run_table.h"
#include "cli/say.h"
#include "cli/table_output.h"
#include "runs/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::array k_options = {
    Option{'a', "all", "", "every run that is on disk, not only active and recent ones"}};

/// Runs that ended so long ago, at most, are listed without --all.
constexpr auto k_recent = 24h;
/// An older run is not asked for its end: no queue is that long.
constexpr auto k_oldest_recent = std::chrono::days(30);

/// The runs to list without --all, newest first: active ones and those that ended a short time ago.
std::vector<RunKey> recent(Store& store, const std::vector<RunKey>& all,
                           const std::vector<RunKey>& active, Time now)
{
    std::vector<RunKey> keys;
    for (const RunKey& key : all) {
        const auto age = now - key.made_at();
        if (age < k_recent ||
            std::binary_search(active.begin(), active.end(), key, std::greater<>())) {
            keys.push_back(key);
        } else if (age < k_oldest_recent) {
            const auto ending = read_ending(store, key);
            if (ending && now - ending->at < k_recent) {
                keys.push_back(key);
            }
        }
    }
    return keys;
}

Result<std::vector<RunKey>> chosen_runs(Store& store, bool want_all, Time now)
{
    TRY_ASSIGN(std::vector<RunKey> all, all_runs(store));
    if (want_all) {
        return all;
    }
    TRY_ASSIGN(const std::vector<RunKey> active, active_runs(store));
    return recent(store, all, active, now);
}

/// What is left of a run that Slurm refused is not one.
bool is_nothing(const RunStatus& status)
{
    return !status.run && !status.job && !status.ending;
}

Result<int> ls(Invocation& invocation)
{
    if (!invocation.words.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("ls takes no words, not '{}'", invocation.words.front()));
    }
    Doors& doors = invocation.doors;
    const bool want_all = invocation.options.has("all");
    const Time now = doors.clock().now();
    TRY_ASSIGN(Store* const store, doors.store());
    TRY_ASSIGN(const std::vector<RunKey> keys, chosen_runs(*store, want_all, now));
    Looked looked = look(look_doors(doors, *store), keys);
    std::erase_if(looked.runs, is_nothing);
    if (!looked.slurm_silent.empty()) {
        say(fmt::format("{}; this is what the disk knows", looked.slurm_silent));
    }
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(run_list(looked, now))));
        return 0;
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
    return 0;
}

} // namespace

const Verb k_ls_verb{"ls", "gpuq ls [--all]", "list your runs", ls, k_options};

} // namespace gpuq::cli
