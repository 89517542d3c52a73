// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/free_verb.h"

#include "cli/free_table.h"
#include "cli/table_output.h"

#include <fmt/format.h>

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{'n', "next", "", "also which GPUs come free next, and when at the latest"}};

Result<FreeGpus> find_free(Cluster& cluster, bool want_next)
{
    FreeGpus found;
    TRY_ASSIGN(found.cluster, cluster.name());
    TRY_ASSIGN(const Inventory inventory, cluster.inventory());
    found.partitions = inventory.partitions;
    found.pools = gpu_pools(inventory);
    if (want_next) {
        TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
        found.next = next_free(inventory.nodes, all.jobs);
        if (all.complete) {
            found.waiting = waiting_line(all.jobs);
        }
    }
    return found;
}

/// The answer is a line above the header, and left out with it.
Result<int> print(const FreeGpus& found, Invocation& invocation, Time now)
{
    const Globals& globals = invocation.globals;
    const report::Table table = found.next ? next_table(found, now) : free_table(found);
    TRY_ASSIGN([[maybe_unused]] const auto checked, report::only(table, globals.columns));
    if (!globals.no_header) {
        TRY(print_line(free_answer(found, now)));
    }
    if (!table.rows.empty()) {
        TRY(print_table(table, globals, invocation.doors));
    }
    return 0;
}

Result<int> free_gpus(Invocation& invocation)
{
    if (!invocation.words.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("free takes no words, not '{}'", invocation.words.front()));
    }
    TRY_ASSIGN(Cluster* const cluster, invocation.doors.cluster());
    TRY_ASSIGN(const FreeGpus found, find_free(*cluster, invocation.options.has("next")));
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(free_document(found))));
        return 0;
    }
    return print(found, invocation, invocation.doors.clock().now());
}

} // namespace

const Verb k_free_verb{"free", "gpuq free [--next]", "GPUs that are free now, and which come next",
                       free_gpus, k_options};

} // namespace gpuq::cli
