// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/free_table.h"

#include "cli/render/forecast_text.h"
#include "cli/render/reservation_text.h"
#include "core/number.h"
#include "core/walltime.h"
#include "ports/nodes.h"
#include "report/ending_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;
using report::Json;

std::string model_text(const std::string& model)
{
    return model.empty() ? "GPU" : model;
}

std::string count_text(const std::optional<int>& count)
{
    return count ? std::to_string(*count) : "?";
}

std::string names_text(const std::vector<std::string>& names)
{
    return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ","));
}

/// The parts of an offer of free GPUs.
enum class Offer { gpus, with_queue, with_limit };

std::string offer_text(const GpuPool& pool, const std::vector<Partition>& partitions, Offer offer)
{
    std::string text = pool.model.empty() ? counted(static_cast<std::uint64_t>(*pool.free), "GPU")
                                          : fmt::format("{} {}", *pool.free, pool.model);
    const auto queue = best_queue(pool, partitions);
    if (queue && offer != Offer::gpus) {
        text += fmt::format(" in queue {}", queue->name);
        text += queue->max_time && offer == Offer::with_limit
                    ? fmt::format(" (up to {})", to_text(*queue->max_time))
                    : "";
    }
    return text;
}

std::string yes_text(const GpuPool& pool, const std::vector<Partition>& partitions)
{
    std::string text = offer_text(pool, partitions, Offer::with_limit);
    if (*pool.most_on_one_node < *pool.free) {
        text += fmt::format(", at most {} on one node", *pool.most_on_one_node);
    }
    return text;
}

std::string no_text(const std::vector<GpuPool>& pools)
{
    int in_use = 0;
    int down = 0;
    int blocked = 0;
    for (const GpuPool& pool : pools) {
        in_use += pool.in_use.value_or(0);
        down += pool.down;
        blocked += pool.blocked;
    }
    std::string text = fmt::format("no: {} in use", in_use);
    text += down > 0 ? fmt::format(", {} down", down) : "";
    text += blocked > 0 ? fmt::format(", {} blocked", blocked) : "";
    for (const GpuPool& pool : pools) {
        if (pool.shares && pool.shares->free.value_or(0) > 0) {
            text += fmt::format(
                "; {} of {} free (-g {}:{})", shares_text(pool), model_text(pool.model),
                word(pool.shares->kind),
                std::min(*pool.shares->free, pool.shares->kind == GpuShare::Kind::mps ? 50 : 1));
        }
    }
    return text;
}

std::string time_left(Time at, Time now)
{
    return at <= now ? "now" : describe(std::chrono::ceil<std::chrono::seconds>(at - now));
}

/// `1 shard`, `50 mps`.
std::string share_text(const GpuShare& share)
{
    return share.kind == GpuShare::Kind::mps
               ? fmt::format("{} mps", share.parts)
               : counted(static_cast<std::uint64_t>(share.parts), "shard");
}

/// The first share to be released, if it is before the first GPU.
std::string next_share_text(const std::vector<NextFree>& next, Time now)
{
    if (next.empty() || next.front().count > 0 || !next.front().share || !next.front().at) {
        return "";
    }
    const NextFree& first = next.front();
    return fmt::format("; the next share: {} of {} by {} at the latest", share_text(*first.share),
                       model_text(first.model), clock_text(*first.at, now));
}

/// The first GPU to be released at a known time; null if there is none.
const NextFree* next_gpu(const std::vector<NextFree>& next)
{
    const auto first =
        std::find_if(next.begin(), next.end(), [](const NextFree& one) { return one.count > 0; });
    return first == next.end() || !first->at ? nullptr : &*first;
}

std::string next_text(const FreeGpus& found, Time now)
{
    if (!found.next) {
        return "; gpuq free --next shows the next ones";
    }
    const NextFree* const first = next_gpu(*found.next);
    const std::string share = next_share_text(*found.next, now);
    if (first == nullptr) {
        return "; time of the next one unknown" + share;
    }
    return fmt::format("; the next: {} {} by {} at the latest{}", first->count,
                       model_text(first->model), clock_text(*first->at, now), share);
}

std::string waiting_text(const FreeGpus& found)
{
    if (!found.waiting || found.waiting->jobs == 0) {
        return "";
    }
    const int jobs = found.waiting->jobs;
    const int gpus = found.waiting->gpus;
    const std::string what = gpus == 0 ? "shares of GPUs" // only those
                                       : counted(static_cast<std::uint64_t>(gpus), "GPU");
    return fmt::format("; {} {} for {}", jobs, jobs == 1 ? "job waits" : "jobs wait", what);
}

Json json_of(const Partition& queue)
{
    return Json::object({{"name", queue.name},
                         {"up", queue.up},
                         {"default", queue.is_default},
                         {"time_limit", queue.max_time},
                         {"default_time", queue.default_time}});
}

Json model_json(const std::string& model)
{
    return model.empty() ? Json() : Json(model);
}

} // namespace

std::string shares_text(const GpuPool& pool)
{
    return pool.shares
               ? fmt::format("{} of {} {}", count_text(pool.shares->free), pool.shares->total,
                             pool.shares->kind == GpuShare::Kind::mps ? "mps" : "shards")
               : "";
}

Json shares_json(const std::optional<PoolShares>& shares)
{
    return shares ? Json::object({{"kind", word(shares->kind)},
                                  {"per_gpu", shares->per_gpu},
                                  {"total", shares->total},
                                  {"free", shares->free}})
                  : Json();
}

namespace {

Json json_of(const GpuPool& pool)
{
    return Json::object({{"model", model_json(pool.model)},
                         {"queues", Json::array(pool.queues)},
                         {"total", pool.total},
                         {"free", pool.free},
                         {"in_use", pool.in_use},
                         {"down", pool.down},
                         {"blocked", pool.blocked},
                         {"most_on_one_node", pool.most_on_one_node},
                         {"shares", shares_json(pool.shares)}});
}

Json json_of(const NextFree& next)
{
    return Json::object({{"at", next.at},
                         {"gpus", next.count},
                         {"model", model_json(next.model)},
                         {"queues", Json::array(next.queues)},
                         {"node", next.node},
                         {"job", next.job},
                         {"share", next.share ? Json::object({{"kind", word(next.share->kind)},
                                                              {"parts", next.share->parts}})
                                              : Json()}});
}

Json json_of(const OwnWait& own)
{
    const auto start = own.planned ? own.planned : own.estimate.at;
    return Json::object({{"job", own.job},
                         {"name", own.name},
                         {"expected_start", start},
                         {"expected_start_basis", own.planned ? Json("backfill")
                                                  : start     ? Json("limits")
                                                              : Json()},
                         {"expected_start_after", own.planned ? Json() : Json(own.estimate.after)},
                         {"start_p50", own.forecast.p50},
                         {"start_p90", own.forecast.p90}});
}

Json json_of(const RequestForecast& request)
{
    int gpus = 0;
    for (const RequestedGpus& asked : request.job.size.gpus) {
        gpus += asked.count;
    }
    const StartForecast& forecast = request.forecast;
    return Json::object(
        {{"queue", request.job.partition},
         {"nodes", request.job.size.nodes},
         {"gpus", gpus},
         {"time_limit", request.job.walltime},
         {"ahead", forecast.p50 ? Json(request.ahead) : Json()},
         {"start_p50", forecast.p50},
         {"start_p90", forecast.p90},
         {"start_unknown", forecast.unknown.empty() ? Json() : Json(forecast.unknown)},
         {"jobs_observed", static_cast<std::int64_t>(request.observed)}});
}

template <typename Row>
Json list_of(const std::vector<Row>& rows)
{
    Json::Elements list;
    for (const Row& row : rows) {
        list.push_back(json_of(row));
    }
    return Json::array(std::move(list));
}

} // namespace

std::string free_answer(const FreeGpus& found, Time now)
{
    if (found.pools.empty()) {
        return "no: this cluster has no GPU";
    }
    const auto is_free = is_one_free(found.pools);
    if (!is_free) {
        return "unknown: Slurm does not report which GPUs are in use";
    }
    if (!*is_free) {
        return no_text(found.pools) + next_text(found, now) + waiting_text(found);
    }
    std::vector<std::string> offers;
    for (const GpuPool& pool : found.pools) {
        if (pool.free.value_or(0) > 0) {
            offers.push_back(yes_text(pool, found.partitions));
        }
    }
    // Waiting jobs that no limit holds back may get them first.
    const bool others_wait = found.waiting && found.waiting->jobs > 0;
    return fmt::format("{}: {}{}", others_wait ? "perhaps" : "yes", fmt::join(offers, "; "),
                       waiting_text(found));
}

std::vector<std::string> short_free_answers(const FreeGpus& found, Time now)
{
    const auto is_free = is_one_free(found.pools);
    if (!is_free) {
        return {found.pools.empty() ? "no GPU" : "use of the GPUs unknown"};
    }
    const int jobs = found.waiting ? found.waiting->jobs : 0;
    const std::string line =
        jobs == 0 ? ""
                  : fmt::format("; {} {}", counted(static_cast<std::uint64_t>(jobs), "job"),
                                jobs == 1 ? "waits" : "wait");
    if (!*is_free) {
        const NextFree* const next = found.next ? next_gpu(*found.next) : nullptr;
        return {(next == nullptr ? "no, next one unknown"
                                 : fmt::format("no, next by {}", clock_text(*next->at, now))) +
                line};
    }
    std::vector<std::string> answers;
    for (const Offer offer : {Offer::with_limit, Offer::with_queue, Offer::gpus}) {
        std::vector<std::string> offers;
        for (const GpuPool& pool : found.pools) {
            if (pool.free.value_or(0) > 0) {
                offers.push_back(offer_text(pool, found.partitions, offer));
            }
        }
        answers.push_back(
            fmt::format("{}: {}{}", jobs > 0 ? "perhaps" : "yes", fmt::join(offers, "; "), line));
    }
    return answers;
}

report::Table free_table(const FreeGpus& found)
{
    using Align = Column::Align;
    using Shrink = Column::Shrink;
    using Tone = Cell::Tone;
    report::Table table;
    table.columns = {{"model", "MODEL"},
                     {"queues", "QUEUES", Align::left, Shrink::yes},
                     {"total", "TOTAL", Align::right},
                     {"free", "FREE", Align::right},
                     {"used", "USED", Align::right},
                     {"down", "DOWN", Align::right},
                     {"blocked", "BLOCKED", Align::right}};
    const bool shared = std::any_of(found.pools.begin(), found.pools.end(),
                                    [](const GpuPool& pool) { return pool.shares.has_value(); });
    if (shared) {
        table.columns.push_back({"shares", "FREE SHARES"});
    }
    for (const GpuPool& pool : found.pools) {
        table.rows.push_back(
            {model_text(pool.model),
             names_text(pool.queues),
             std::to_string(pool.total),
             {count_text(pool.free), pool.free.value_or(0) > 0 ? Tone::good : Tone::plain},
             count_text(pool.in_use),
             {std::to_string(pool.down), pool.down > 0 ? Tone::warning : Tone::plain},
             std::to_string(pool.blocked)});
        if (shared) {
            table.rows.back().push_back(shares_text(pool));
        }
    }
    return table;
}

report::Table next_table(const FreeGpus& found, Time now)
{
    using Align = Column::Align;
    using Shrink = Column::Shrink;
    report::Table table;
    table.columns = {{"at", "BY"},
                     {"in", "IN"},
                     {"gpus", "GPUS", Align::right},
                     {"model", "MODEL"},
                     {"queues", "QUEUES", Align::left, Shrink::yes},
                     {"node", "NODE"},
                     {"job", "JOB", Align::right}};
    const auto rows = found.next.value_or(std::vector<NextFree>{});
    const bool shared = std::any_of(rows.begin(), rows.end(),
                                    [](const NextFree& next) { return next.share.has_value(); });
    if (shared) {
        table.columns.push_back({"shares", "SHARES"});
    }
    for (const NextFree& next : rows) {
        table.rows.push_back({next.at ? clock_text(*next.at, now) : "?",
                              next.at ? time_left(*next.at, now) : "no limit",
                              std::to_string(next.count), model_text(next.model),
                              names_text(next.queues), next.node, std::to_string(next.job.value)});
        if (shared) {
            table.rows.back().push_back(next.share ? share_text(*next.share) : "");
        }
    }
    return table;
}

std::vector<std::string> own_lines(const FreeGpus& found, Time now)
{
    std::vector<std::string> lines;
    for (const OwnWait& own : found.own_waiting) {
        const std::string when =
            own.planned ? fmt::format("expected start {}, by Slurm's backfill plan or sooner",
                                      clock_text(*own.planned, now))
            : own.estimate.at
                ? fmt::format("starts by {} at the latest, when {}",
                              clock_text(*own.estimate.at, now), basis_text(own.estimate))
                : fmt::format("start not known: {}", own.estimate.unknown);
        const std::string forecast = forecast_text(own.forecast, now);
        lines.push_back(fmt::format("your job {} ({}): {}{}{}", own.job.value, own.name, when,
                                    forecast.empty() ? "" : "; ", forecast));
    }
    return lines;
}

std::vector<std::string> request_lines(const RequestForecast& request, Time now)
{
    const StartForecast& forecast = request.forecast;
    if (!forecast.p50) {
        return {fmt::format("{}: start not known: {}", request.summary, forecast.unknown)};
    }
    const auto ahead = static_cast<std::uint64_t>(request.ahead);
    return {fmt::format("{}: {}", request.summary, forecast_in_full(forecast, now)),
            fmt::format("as the last in line, behind {}; {}", counted(ahead, "waiting job"),
                        observed_text(request.observed))};
}

Json::Members free_document(const FreeGpus& found, Time now)
{
    return {{"cluster", found.cluster},
            {"free_now", is_one_free(found.pools)},
            {"pools", list_of(found.pools)},
            {"queues", list_of(found.partitions)},
            {"next", found.next ? list_of(*found.next) : Json()},
            {"own_waiting", found.next ? list_of(found.own_waiting) : Json()},
            {"waiting", found.waiting ? Json::object({{"jobs", found.waiting->jobs},
                                                      {"gpus", found.waiting->gpus}})
                                      : Json()},
            {"for", found.request ? json_of(*found.request) : Json()},
            {"reservations", found.reserved ? reservations_json(*found.reserved, now) : Json()}};
}

} // namespace gpuq::cli
