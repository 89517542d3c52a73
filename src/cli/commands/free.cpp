// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/table_output.h"
#include "cli/queries/site_context.h"
#include "cli/render/free_table.h"
#include "cli/render/reservation_text.h"
#include "cli/start/imagined_run.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "runs/insight/overview.h"

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

constexpr Option k_next{'n', "next", "",
                        "show which GPUs come free next, and by when at the latest"};
constexpr Option k_for{0, "for", "", "show when a run with the following options would start"};

std::span<const Option> option_table()
{
    static const std::vector<Option> table = [] {
        std::vector<Option> rows{k_next, k_for};
        const auto sizes = size_option_table();
        rows.insert(rows.end(), sizes.begin(), sizes.end());
        return rows;
    }();
    return table;
}

std::vector<OwnWait> own_waiting(const Inventory& inventory, const AllJobs& all,
                                 const RunTimes& times, Time now)
{
    std::vector<OwnWait> list;
    std::set<JobId> unplanned;
    std::set<JobId> pending;
    for (const Job& job : all.jobs) {
        if (job.uid == ::getuid() && could_start(job)) {
            list.push_back({job.id, job.name, job.started_at, {}, {}});
            pending.insert(job.id);
            if (wants_estimate(job)) {
                unplanned.insert(job.id);
            }
        }
    }
    const StartEstimates estimates = expected_starts(unplanned, all, inventory, now);
    StartForecasts forecasts = forecast_starts(pending, all, inventory, times, now);
    for (OwnWait& own : list) {
        const auto found = estimates.find(own.job);
        own.estimate = found == estimates.end() ? StartEstimate{} : found->second;
        own.forecast = std::move(forecasts[own.job]);
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

/// Those observed by all of gpuq's processes; without a state directory, only by this one.
RunTimes run_times(Services& services, const std::string& cluster, const AllJobs& all, Time now)
{
    if (const auto store = services.store()) {
        return learn_run_times(**store, cluster, all, now);
    }
    RunTimes times;
    observe(times, all.jobs, now);
    return times;
}

Result<FreeGpus> find_free(Services& services, Cluster& cluster, const Options& options, Time now)
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
    if (options.has("next") || options.has("for")) {
        TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
        const RunTimes times = run_times(services, found.cluster, all, now);
        if (options.has("for")) {
            TRY_ASSIGN(found.request, forecast_run(services, options, inventory, all, times, now));
        }
        found.next = next_free(inventory.nodes, all.jobs);
        if (all.complete) {
            found.waiting = waiting_line(all.jobs);
        }
        found.own_waiting = own_waiting(inventory, all, times, now);
    }
    return found;
}

Result<int> print_request(const RequestForecast& request, Time now)
{
    for (const std::string& line : request_lines(request, now)) {
        TRY(print_line(line));
    }
    return 0;
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
    const Options& options = invocation.options;
    for (const Option& size : size_option_table()) {
        if (options.has(size.name) && !options.has("for")) {
            return fail(Error::Kind::usage,
                        fmt::format("free: --{} describes a run: add --for", size.name));
        }
    }
    if (options.has("for") && options.has("next")) {
        return fail(Error::Kind::usage, "free: --for and --next exclude each other");
    }
    TRY_ASSIGN(Cluster* const cluster, invocation.services.cluster());
    TRY_ASSIGN(const FreeGpus found, find_free(invocation.services, *cluster, options,
                                               invocation.services.clock().now()));
    if (invocation.globals.json) {
        TRY(print_text(
            report::json_document(free_document(found, invocation.services.clock().now()))));
        return 0;
    }
    if (found.request) {
        return print_request(*found.request, invocation.services.clock().now());
    }
    return print(found, invocation, invocation.services.clock().now());
}

} // namespace

const Verb k_free_verb{"free", "gpuq free [--next | --for [-g GPUS] [-t TIME] ...]",
                       "show which GPUs are free, or when a run would start", free_gpus,
                       option_table()};

} // namespace gpuq::cli
