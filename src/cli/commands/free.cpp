// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/table_output.h"
#include "cli/queries/site_context.h"
#include "cli/render/free_table.h"
#include "cli/render/reservation_text.h"
#include "ports/clock.h"
#include "ports/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace gpuq::cli {
namespace {

using Lines = std::vector<std::string>;
using Reserved = std::vector<ReservedGpus>;

constexpr std::array k_options = {
    Option{'n', "next", "", "show which GPUs come free next, and by when at the latest"}};

std::vector<OwnWait> own_waiting(const Inventory& inventory, const AllJobs& all, Time now)
{
    std::vector<OwnWait> list;
    std::set<JobId> unplanned;
    for (const Job& job : all.jobs) {
        if (job.uid == ::getuid() && could_start(job)) {
            list.push_back({job.id, job.name, job.started_at, {}});
            if (wants_estimate(job)) {
                unplanned.insert(job.id);
            }
        }
    }
    const StartEstimates estimates = expected_starts(unplanned, all, inventory, now);
    for (OwnWait& own : list) {
        const auto found = estimates.find(own.job);
        own.estimate = found == estimates.end() ? StartEstimate{} : found->second;
    }
    return list;
}

/// The nodes of a reservation of `gpuq reserve` are available to its users: the script of the
/// policy sends their jobs there.
void open_to_user(std::vector<Node>& nodes, const Reserved& reserved, Time now)
{
    const std::string user = user_name();
    for (const ReservedGpus& one : reserved) {
        const Reservation& reservation = one.reservation;
        const bool is_on = reservation.start <= now && now < reservation.end;
        if (!is_on || !parse_reservation_name(reservation.name) ||
            std::count(reservation.users.begin(), reservation.users.end(), user) == 0) {
            continue;
        }
        for (Node& node : nodes) {
            node.reserved =
                node.reserved && std::count(one.nodes.begin(), one.nodes.end(), node.name) == 0;
        }
    }
}

Result<FreeGpus> find_free(Cluster& cluster, bool want_next, Time now)
{
    FreeGpus found;
    TRY_ASSIGN(found.cluster, cluster.name());
    TRY_ASSIGN(Inventory inventory, cluster.inventory());
    if (const auto reservations = cluster.reservations()) {
        found.reserved = reserved_gpus(*reservations, inventory.nodes);
        mark_reserved(inventory.nodes, *found.reserved, now);
        open_to_user(inventory.nodes, *found.reserved, now);
    }
    found.partitions = inventory.partitions;
    found.pools = gpu_pools(inventory);
    if (want_next) {
        TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
        found.next = next_free(inventory.nodes, all.jobs);
        if (all.complete) {
            found.waiting = waiting_line(all.jobs);
        }
        found.own_waiting = own_waiting(inventory, all, now);
    }
    return found;
}

/// The answer is a line above the header, and omitted together with it.
Result<int> print(const FreeGpus& found, Invocation& invocation, Time now)
{
    const Globals& globals = invocation.globals;
    const report::Table table = found.next ? next_table(found, now) : free_table(found);
    TRY_ASSIGN([[maybe_unused]] const auto checked, report::only(table, globals.columns));
    if (!globals.no_header) {
        TRY(print_line(free_answer(found, now)));
    }
    if (!table.rows.empty()) {
        TRY(print_table(table, globals, invocation.services));
    }
    for (const std::string& line : globals.no_header ? Lines{} : own_lines(found, now)) {
        TRY(print_line(line));
    }
    for (const ReservedGpus& one :
         globals.no_header ? Reserved{} : found.reserved.value_or(Reserved{})) {
        TRY(print_line(reservation_line(one, now)));
    }
    return 0;
}

Result<int> free_gpus(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("free: unexpected argument '{}'", invocation.arguments.front()));
    }
    TRY_ASSIGN(Cluster* const cluster, invocation.services.cluster());
    TRY_ASSIGN(const FreeGpus found, find_free(*cluster, invocation.options.has("next"),
                                               invocation.services.clock().now()));
    if (invocation.globals.json) {
        TRY(print_text(
            report::json_document(free_document(found, invocation.services.clock().now()))));
        return 0;
    }
    return print(found, invocation, invocation.services.clock().now());
}

} // namespace

const Verb k_free_verb{"free", "gpuq free [--next]", "show which GPUs are free", free_gpus,
                       k_options};

} // namespace gpuq::cli
