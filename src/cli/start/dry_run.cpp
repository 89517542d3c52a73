// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/dry_run.h"

#include "cli/render/forecast_text.h"
#include "core/redact.h"
#include "report/ending_text.h"
#include "runs/queues/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

/// As often as gpuq top queries nodes and all jobs, with some time for the query.
constexpr auto k_nodes_recent = 90s, k_jobs_recent = 400s;

bool is_recent(const std::optional<Time>& at, Time now, std::chrono::seconds most)
{
    return at && *at <= now && now - *at <= most;
}

/// The GPUs that the run may get.
std::vector<const PoolUse*> pools_for(const JobSpec& spec, const Overview& overview)
{
    std::vector<const PoolUse*> found;
    for (const PoolUse& use : overview.pools) {
        const auto& queues = use.pool.queues;
        const bool is_of_queue =
            std::any_of(queues.begin(), queues.end(), [&](const std::string& queue) {
                return names_queue(spec.partition, queue);
            });
        if (is_of_queue && (!spec.gpu_model || *spec.gpu_model == use.pool.model)) {
            found.push_back(&use);
        }
    }
    return found;
}

std::string name_of(const PoolUse& use)
{
    return use.pool.model.empty() ? "GPU" : use.pool.model;
}

std::string age_text(const Overview& overview, Time now)
{
    return describe(std::chrono::floor<std::chrono::seconds>(now - *overview.at));
}

std::string waiting_text(const JobSpec& spec, const PoolUse& use, const Overview& overview,
                         Time now)
{
    const int wanted = spec.gpus_per_node;
    const int most = use.pool.most_on_one_node.value_or(0);
    const bool has_all = is_recent(overview.whole_at, now, k_jobs_recent);
    const std::string age = age_text(overview, now);
    std::string text = most > 0 ? fmt::format("waits: a node had at most {} of {} {} free {} ago",
                                              most, wanted, name_of(use), age)
                                : fmt::format("waits: no {} was free {} ago", name_of(use), age);
    const bool is_one = wanted * spec.nodes == 1;
    const std::string forecast = has_all && use.forecast ? forecast_text(*use.forecast, now) : "";
    if (most == 0 && !forecast.empty()) {
        text += fmt::format(
            "{}{}", is_one ? "; starts with a probability of " : "; one of them: ", forecast);
    }
    if (has_all && use.next && *use.next > now) {
        text +=
            fmt::format("; the next one is free by {} at the latest", clock_text(*use.next, now));
    }
    return text;
}

/// The GPUs of the largest node in these pools; 0: not known.
int most_on_a_node(const std::vector<const PoolUse*>& pools)
{
    int most = 0;
    for (const PoolUse* use : pools) {
        for (const NodeUse& node : use->nodes) {
            most = std::max(most, node.total);
        }
    }
    return most;
}

} // namespace

std::string start_text(const JobSpec& spec, const Overview& overview, Time now)
{
    const auto pools = pools_for(spec, overview);
    if (spec.gpus_per_node == 0 || spec.share || pools.empty() ||
        !is_recent(overview.at, now, k_nodes_recent)) {
        return "";
    }
    const int most = most_on_a_node(pools);
    if (most > 0 && spec.gpus_per_node > most) {
        return fmt::format("cannot start: the nodes of the queue have at most {} {} each", most,
                           spec.gpu_model.value_or("GPUs"));
    }
    const auto room = [](const PoolUse* use) { return use->pool.most_on_one_node.value_or(0); };
    const PoolUse& best = **std::max_element(
        pools.begin(), pools.end(),
        [&](const PoolUse* one, const PoolUse* other) { return room(one) < room(other); });
    const bool is_known = std::all_of(
        pools.begin(), pools.end(), [](const PoolUse* use) { return use->pool.free.has_value(); });
    if (!is_known) {
        return "";
    }
    const bool fits = room(&best) >= spec.gpus_per_node &&
                      best.pool.free.value_or(0) >= spec.gpus_per_node * spec.nodes;
    if (!fits) {
        return waiting_text(spec, best, overview, now);
    }
    const int ahead = overview.waiting ? overview.waiting->jobs : 0;
    const std::string free =
        fmt::format("{} {} {} free {} ago", *best.pool.free, name_of(best),
                    *best.pool.free == 1 ? "was" : "were", age_text(overview, now));
    return ahead == 0
               ? "starts at once: " + free
               : fmt::format("{}, but {} as well", free,
                             ahead == 1 ? "a job waits" : fmt::format("{} jobs wait", ahead));
}

std::string expected_start(Services& services, Cluster& cluster, const JobSpec& spec)
{
    const auto store = services.store();
    const auto name = cluster.name();
    return store && name ? start_text(spec, kept_overview(**store, *name), services.clock().now())
                         : "";
}

Request without_values(Request request, const std::vector<std::string>& names)
{
    for (auto& [name, value] : request.setup.env) {
        if (std::find(names.begin(), names.end(), name) != names.end()) {
            value = k_removed_secret;
        }
    }
    return request;
}

} // namespace gpuq::cli
