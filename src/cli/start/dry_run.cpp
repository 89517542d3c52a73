// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/dry_run.h"

#include "cli/render/forecast_text.h"
#include "core/number.h"
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
using report::Json;

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

std::string age_text(const ExpectedStart& start, Time now)
{
    return describe(std::chrono::floor<std::chrono::seconds>(now - start.asked_at));
}

/// `2 k80`, or without a model `2 GPUs`.
std::string gpus_text(int count, const ExpectedStart& start)
{
    return start.model ? fmt::format("{} {}", count, *start.model)
                       : counted(static_cast<std::uint64_t>(count), "GPU");
}

std::string waiting_text(const ExpectedStart& start, const JobSpec& spec, Time now)
{
    const int wanted = spec.gpus_per_node;
    const std::string model = start.model.value_or("GPU");
    const std::string age = age_text(start, now);
    std::string text = start.most_on_a_node > 0
                           ? fmt::format("waits: a node had at most {} of {} free {} ago",
                                         start.most_on_a_node, gpus_text(wanted, start), age)
                           : fmt::format("waits: no {} was free {} ago", model, age);
    const bool is_one = wanted * spec.nodes == 1;
    const std::string forecast = start.forecast ? forecast_text(*start.forecast, now) : "";
    if (!forecast.empty()) {
        text += fmt::format(
            "{}{}", is_one ? "; starts with a probability of " : "; one of them: ", forecast);
    }
    if (start.next && *start.next > now) {
        text +=
            fmt::format("; the next one is free by {} at the latest", clock_text(*start.next, now));
    }
    return text;
}

/// When one of these GPUs is free, if all jobs are known.
void add_wait(ExpectedStart& start, const PoolUse& use, const Overview& overview)
{
    if (start.jobs_asked_at) {
        start.forecast = start.most_on_a_node == 0 ? use.forecast : std::nullopt;
        start.next = use.next;
        start.observed = overview.run_times.ended();
    }
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

Json start_json(const ExpectedStart& start, const JobSpec& spec, Time now)
{
    constexpr const char* k_answers[] = {"at_once", "others_wait", "waits", "never"};
    const StartForecast forecast = start.forecast.value_or(StartForecast{});
    return Json::object(
        {{"answer", k_answers[static_cast<std::size_t>(start.answer)]},
         {"text", start_text(start, spec, now)},
         {"model", start.model},
         {"free", start.free},
         {"most_on_one_node", start.most_on_a_node},
         {"waiting_jobs", start.waiting},
         {"start_p50", forecast.p50},
         {"start_p90", forecast.p90},
         {"next_free_at", start.next},
         {"asked_at", start.asked_at},
         {"jobs_asked_at", start.jobs_asked_at},
         {"jobs_observed",
          start.forecast ? Json(static_cast<std::int64_t>(start.observed)) : Json()}});
}

} // namespace

std::optional<ExpectedStart> expected_start(const JobSpec& spec, const Overview& overview, Time now)
{
    const auto pools = pools_for(spec, overview);
    if (spec.gpus_per_node == 0 || spec.share || pools.empty() ||
        !is_recent(overview.at, now, k_nodes_recent)) {
        return std::nullopt;
    }
    ExpectedStart start;
    start.asked_at = *overview.at;
    start.waiting = overview.waiting ? std::optional(overview.waiting->jobs) : std::nullopt;
    if (is_recent(overview.whole_at, now, k_jobs_recent)) {
        start.jobs_asked_at = overview.whole_at;
    }
    const int most = most_on_a_node(pools);
    if (most > 0 && spec.gpus_per_node > most) {
        start.answer = ExpectedStart::Answer::never;
        start.model = spec.gpu_model;
        start.most_on_a_node = most;
        return start;
    }
    const bool is_known = std::all_of(
        pools.begin(), pools.end(), [](const PoolUse* use) { return use->pool.free.has_value(); });
    if (!is_known) {
        return std::nullopt;
    }
    const auto room = [](const PoolUse* use) { return use->pool.most_on_one_node.value_or(0); };
    const PoolUse& best = **std::max_element(
        pools.begin(), pools.end(),
        [&](const PoolUse* one, const PoolUse* other) { return room(one) < room(other); });
    if (!best.pool.model.empty()) {
        start.model = best.pool.model;
    }
    start.free = best.pool.free;
    start.most_on_a_node = room(&best);
    const bool fits = start.most_on_a_node >= spec.gpus_per_node &&
                      *start.free >= spec.gpus_per_node * spec.nodes;
    if (!fits) {
        add_wait(start, best, overview);
    } else {
        start.answer = start.waiting.value_or(0) > 0 ? ExpectedStart::Answer::others_wait
                                                     : ExpectedStart::Answer::at_once;
    }
    return start;
}

std::optional<ExpectedStart> expected_start(Services& services, Cluster& cluster,
                                            const JobSpec& spec)
{
    const auto store = services.store();
    const auto name = cluster.name();
    return store && name
               ? expected_start(spec, kept_overview(**store, *name), services.clock().now())
               : std::nullopt;
}

std::string start_text(const ExpectedStart& start, const JobSpec& spec, Time now)
{
    using Answer = ExpectedStart::Answer;
    if (start.answer == Answer::never) {
        return fmt::format("cannot start: the nodes of the queue have at most {} {} each",
                           start.most_on_a_node, start.model.value_or("GPUs"));
    }
    if (start.answer == Answer::waits) {
        return waiting_text(start, spec, now);
    }
    const std::string free =
        fmt::format("{} {} free {} ago", gpus_text(start.free.value_or(0), start),
                    start.free == 1 ? "was" : "were", age_text(start, now));
    const int ahead = start.waiting.value_or(0);
    return start.answer == Answer::at_once
               ? "starts at once: " + free
               : fmt::format("{}, but {} as well", free,
                             ahead == 1 ? "a job waits" : fmt::format("{} jobs wait", ahead));
}

Json::Members dry_run_document(const Plan& plan, const std::string& script,
                               const std::optional<ExpectedStart>& start, Time now)
{
    return {{"name", plan.request.name},
            {"plan", plan.summary},
            {"script", script},
            {"start", start ? start_json(*start, plan.spec, now) : Json()}};
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
