// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/overview_record.h"

#include "ports/job.h"
#include "ports/nodes.h"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpuq {
namespace {

using nlohmann::json;

constexpr int k_version = 6;

template <typename Value>
json of(const std::optional<Value>& value)
{
    return value ? json(*value) : json();
}

json of(const std::optional<Time>& time)
{
    return time ? json(std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count())
                : json();
}

std::optional<Time> time_in(const json& value)
{
    return value.is_null() ? std::nullopt
                           : std::optional(Time(std::chrono::seconds(value.get<std::int64_t>())));
}

std::optional<int> number_in(const json& value)
{
    return value.is_null() ? std::nullopt : std::optional(value.get<int>());
}

json of(const std::optional<PoolShares>& shares)
{
    return shares
               ? json::array({word(shares->kind), shares->per_gpu, shares->total, of(shares->free)})
               : json();
}

std::optional<PoolShares> shares_in(const json& value)
{
    if (value.is_null()) {
        return std::nullopt;
    }
    return PoolShares{share_kind(value.at(0).get<std::string>()).value_or(GpuShare::Kind::shard),
                      value.at(1).get<int>(), value.at(2).get<int>(), number_in(value.at(3))};
}

/// The share that a job requests.
json of(const std::optional<GpuShare>& share)
{
    return share ? json::array({word(share->kind), share->parts}) : json();
}

std::optional<GpuShare> share_in(const json& value)
{
    if (value.is_null()) {
        return std::nullopt;
    }
    return GpuShare{share_kind(value.at(0).get<std::string>()).value_or(GpuShare::Kind::shard),
                    value.at(1).get<int>(),
                    {},
                    {},
                    {}};
}

json of(const std::optional<StartForecast>& forecast)
{
    return forecast ? json::array({of(forecast->p50), of(forecast->p90), forecast->unknown})
                    : json();
}

std::optional<StartForecast> forecast_in(const json& value)
{
    return value.is_null() ? std::nullopt
                           : std::optional(StartForecast{time_in(value.at(0)), time_in(value.at(1)),
                                                         value.at(2).get<std::string>()});
}

json of(const PoolUse& use)
{
    const GpuPool& pool = use.pool;
    json nodes = json::array();
    for (const NodeUse& node : use.nodes) {
        nodes.push_back({node.name, node.total, of(node.in_use), node.up, node.reserved,
                         node.blocked, node.mine});
    }
    return {{"model", pool.model},       {"queues", pool.queues},
            {"total", pool.total},       {"free", of(pool.free)},
            {"in_use", of(pool.in_use)}, {"down", pool.down},
            {"blocked", pool.blocked},   {"mine", of(use.mine)},
            {"next", of(use.next)},      {"most", of(pool.most_on_one_node)},
            {"nodes", std::move(nodes)}, {"shares", of(pool.shares)},
            {"start", of(use.forecast)}};
}

PoolUse pool_in(const json& value)
{
    PoolUse use;
    use.pool.model = value.at("model").get<std::string>();
    use.pool.queues = value.at("queues").get<std::vector<std::string>>();
    use.pool.total = value.at("total").get<int>();
    use.pool.free = number_in(value.at("free"));
    use.pool.in_use = number_in(value.at("in_use"));
    use.pool.down = value.at("down").get<int>();
    use.pool.blocked = value.at("blocked").get<int>();
    use.pool.most_on_one_node = number_in(value.at("most"));
    use.pool.shares = shares_in(value.at("shares"));
    use.mine = number_in(value.at("mine"));
    use.next = time_in(value.at("next"));
    use.forecast = forecast_in(value.value("start", json())); // not in older files
    for (const json& node : value.at("nodes")) {
        use.nodes.push_back({node.at(0).get<std::string>(), node.at(1).get<int>(),
                             number_in(node.at(2)), node.at(3).get<bool>(), node.at(4).get<bool>(),
                             node.at(5).get<int>(), node.at(6).get<int>()});
    }
    return use;
}

json of(const StartEstimate& estimate)
{
    return {{"at", of(estimate.at)},
            {"after", estimate.after ? json(estimate.after->value) : json()},
            {"waits", estimate.after_waits},
            {"unknown", estimate.unknown}};
}

StartEstimate estimate_in(const json& value)
{
    StartEstimate estimate;
    estimate.at = time_in(value.at("at"));
    if (const json& after = value.at("after"); !after.is_null()) {
        estimate.after = JobId{after.get<std::uint32_t>()};
    }
    estimate.after_waits = value.at("waits").get<bool>();
    estimate.unknown = value.at("unknown").get<std::string>();
    return estimate;
}

json of(const Calibration& calibration)
{
    json checks = json::array();
    for (const Calibration::Check& check : calibration.checks) {
        checks.push_back(
            {check.job.value, of(check.p50), of(check.p90), of(check.started), check.has_p50});
    }
    return {{"p50", calibration.p50},
            {"p90", calibration.p90},
            {"noted", of(calibration.noted_at)},
            {"checks", std::move(checks)}};
}

/// That of no observation if it is invalid.
Calibration calibration_in(const json& value)
{
    Calibration calibration;
    if (value.is_null()) {
        return calibration;
    }
    calibration.p50 = value.at("p50").get<double>();
    calibration.p90 = value.at("p90").get<double>();
    if (!(calibration.p50 > 0 && calibration.p50 < 1 && calibration.p90 > 0 &&
          calibration.p90 < 1)) {
        return {};
    }
    calibration.noted_at = time_in(value.at("noted"));
    for (const json& one : value.at("checks")) {
        const auto p50 = time_in(one.at(1));
        const auto p90 = time_in(one.at(2));
        if (p50 && p90) {
            calibration.checks.push_back({JobId{one.at(0).get<std::uint32_t>()}, *p50, *p90,
                                          time_in(one.at(3)), one.at(4).get<bool>()});
        }
    }
    return calibration;
}

json of(const RunTimes& times)
{
    json list = json::array();
    for (const RunTimes::Table& table : times.tables) {
        for (const RunTimes::Interval& interval : table) {
            list.push_back(interval.ended);
            list.push_back(interval.exposure);
        }
    }
    json recent = json::array();
    for (const RunTimes::Recent& one : times.recent) {
        recent.push_back({one.ended, one.expected});
    }
    return {{"until", of(times.until)},
            {"kept", times.kept.count()},
            {"tables", std::move(list)},
            {"recent", std::move(recent)},
            {"calibration", of(times.calibration)}};
}

/// Nothing observed if the intervals are those of another version.
RunTimes run_times_in(const json& value)
{
    RunTimes times;
    const json& list = value.at("tables");
    const std::size_t each = times.tables[0].size();
    if (list.size() != 2 * times.tables.size() * each) {
        return {};
    }
    for (std::size_t i = 0; i < list.size() / 2; ++i) {
        RunTimes::Interval& interval = times.tables[i / each][i % each];
        interval = {list[2 * i].get<double>(), list[2 * i + 1].get<double>()};
        if (!(interval.ended >= 0 && interval.exposure >= 0)) {
            return {};
        }
    }
    const json& recent = value.at("recent");
    for (std::size_t kind = 0; kind < times.recent.size(); ++kind) {
        RunTimes::Recent& one = times.recent[kind];
        one = {recent.at(kind).at(0).get<double>(), recent.at(kind).at(1).get<double>()};
        if (!(one.ended >= 0 && one.expected >= 0)) {
            return {};
        }
    }
    times.until = time_in(value.at("until"));
    times.kept = std::chrono::seconds(value.at("kept").get<std::int64_t>());
    times.calibration = calibration_in(value.value("calibration", json())); // not written before
    return times;
}

JobState state_in(const json& value)
{
    const int state = value.get<int>();
    return state >= 0 && state < static_cast<int>(JobState::unknown) ? static_cast<JobState>(state)
                                                                     : JobState::unknown;
}

json of(const OwnJob& own)
{
    const Job& job = own.job;
    json held = json::array();
    for (const HeldGpus& gpus : job.held.whole) {
        held.push_back({gpus.node, gpus.model, gpus.count});
    }
    json asked = json::array();
    for (const RequestedGpus& gpus : job.size.gpus) {
        asked.push_back({gpus.model, gpus.count});
    }
    return {{"id", job.id.value},
            {"called", job.called},
            {"name", job.name},
            {"queue", job.partition},
            {"comment", job.comment},
            {"state", static_cast<int>(job.state)},
            {"reason", job.reason},
            {"exit", of(job.exit_status)},
            {"submitted", of(job.submitted_at)},
            {"started", of(job.started_at)},
            {"ends", of(job.ends_at)},
            {"minutes", job.walltime ? json(job.walltime->count()) : json()},
            {"nodes", job.nodes},
            {"host", job.batch_host},
            {"gpus", job.gpus},
            {"batch", job.batch},
            {"held", std::move(held)},
            {"asked", std::move(asked)},
            {"share", of(job.size.share)},
            {"count", job.size.nodes},
            {"script", job.files.script},
            {"dir", job.files.work_dir},
            {"out", job.files.output},
            {"err", job.files.error},
            {"ahead", of(own.ahead)},
            {"estimate", own.estimate ? of(*own.estimate) : json()},
            {"forecast", of(own.forecast)}};
}

OwnJob job_in(const json& value)
{
    OwnJob own;
    Job& job = own.job;
    job.id = JobId{value.at("id").get<std::uint32_t>()};
    job.called = value.at("called").get<std::string>();
    job.name = value.at("name").get<std::string>();
    job.partition = value.at("queue").get<std::string>();
    job.comment = value.at("comment").get<std::string>();
    job.state = state_in(value.at("state"));
    job.reason = value.at("reason").get<std::string>();
    job.exit_status = number_in(value.at("exit"));
    job.submitted_at = time_in(value.at("submitted"));
    job.started_at = time_in(value.at("started"));
    job.ends_at = time_in(value.at("ends"));
    if (const json& minutes = value.at("minutes"); !minutes.is_null()) {
        job.walltime = std::chrono::minutes(minutes.get<std::int64_t>());
    }
    job.nodes = value.at("nodes").get<std::string>();
    job.batch_host = value.at("host").get<std::string>();
    job.gpus = value.at("gpus").get<int>();
    job.batch = value.at("batch").get<bool>();
    for (const json& gpus : value.at("held")) {
        job.held.whole.push_back(
            {gpus.at(0).get<std::string>(), gpus.at(1).get<std::string>(), gpus.at(2).get<int>()});
    }
    for (const json& gpus : value.at("asked")) {
        job.size.gpus.push_back({gpus.at(0).get<std::string>(), gpus.at(1).get<int>()});
    }
    job.size.share = share_in(value.at("share"));
    job.size.nodes = value.at("count").get<int>();
    job.files = {value.at("script").get<std::string>(), value.at("dir").get<std::string>(),
                 value.at("out").get<std::string>(), value.at("err").get<std::string>()};
    own.ahead = number_in(value.at("ahead"));
    if (const json& estimate = value.at("estimate"); !estimate.is_null()) {
        own.estimate = estimate_in(estimate);
    }
    own.forecast = forecast_in(value.value("forecast", json())); // not written before
    return own;
}

json of(const Partition& queue)
{
    return {{"name", queue.name},
            {"up", queue.up},
            {"default", queue.is_default},
            {"minutes", queue.max_time ? json(queue.max_time->count()) : json()}};
}

Partition queue_in(const json& value)
{
    Partition queue;
    queue.name = value.at("name").get<std::string>();
    queue.up = value.at("up").get<bool>();
    queue.is_default = value.at("default").get<bool>();
    if (const json& minutes = value.at("minutes"); !minutes.is_null()) {
        queue.max_time = std::chrono::minutes(minutes.get<std::int64_t>());
    }
    return queue;
}

json of(const ReservedGpus& reserved)
{
    const Reservation& reservation = reserved.reservation;
    return {{"name", reservation.name},
            {"from", of(std::optional(reservation.start))},
            {"until", of(std::optional(reservation.end))},
            {"list", reservation.nodes},
            {"partition", reservation.partition},
            {"users", reservation.users},
            {"accounts", reservation.accounts},
            {"gpus", reserved.gpus},
            {"nodes", reserved.nodes},
            {"queues", reserved.queues}};
}

ReservedGpus reserved_in(const json& value)
{
    using Names = std::vector<std::string>;
    return {{value.at("name").get<std::string>(), time_in(value.at("from")).value_or(Time{}),
             time_in(value.at("until")).value_or(Time{}), value.at("list").get<std::string>(),
             value.at("partition").get<std::string>(), value.at("users").get<Names>(),
             value.at("accounts").get<Names>()},
            value.at("gpus").get<int>(),
            value.at("nodes").get<Names>(),
            value.at("queues").get<Names>()};
}

template <typename Value>
json list_of(const std::vector<Value>& values)
{
    json list = json::array();
    for (const Value& value : values) {
        list.push_back(of(value));
    }
    return list;
}

/// The strings of all holdings, each once.
class Names {
public:
    std::int64_t place_of(const std::string& name)
    {
        const auto [found, is_new] = m_places.try_emplace(name, m_names.size());
        if (is_new) {
            m_names.push_back(name);
        }
        return static_cast<std::int64_t>(found->second);
    }
    const std::vector<std::string>& all() const { return m_names; }

private:
    std::unordered_map<std::string, std::size_t> m_places;
    std::vector<std::string> m_names;
};

/// A holding in numbers: places of its node, model and `called` in the names, count, job, uid,
/// since, until.
using Row = std::array<std::int64_t, 8>;
constexpr std::int64_t k_no_time = -1;
constexpr std::int64_t k_largest = std::int64_t{1} << 40;

std::int64_t number_of(const std::optional<Time>& time)
{
    return time ? std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count()
                : k_no_time;
}

std::optional<Time> time_of(std::int64_t number)
{
    return number == k_no_time ? std::nullopt : std::optional(Time(std::chrono::seconds(number)));
}

/// Every number as the difference from the same column of the row above, followed by a space: there
/// may be 10,000 holdings, and each number as JSON would take twice as long to read.
std::string text_of(const std::vector<Row>& rows)
{
    std::string text;
    Row above{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            std::array<char, 24> digits{};
            const auto end =
                std::to_chars(digits.data(), digits.data() + digits.size(), row[i] - above[i]);
            text.append(digits.data(), end.ptr).push_back(' ');
        }
        above = row;
    }
    return text;
}

/// Nothing if text_of() does not write such a text.
std::optional<std::vector<Row>> rows_in(std::string_view text)
{
    std::vector<Row> rows;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at != end;) {
        Row row = rows.empty() ? Row{} : rows.back();
        for (std::int64_t& value : row) {
            std::int64_t more = 0;
            const auto [next, error] = std::from_chars(at, end, more);
            const bool is_number = error == std::errc() && next != end && *next == ' ';
            if (!is_number || more > k_largest || more < -k_largest) {
                return std::nullopt;
            }
            value += more;
            if (value > k_largest || value < k_no_time) {
                return std::nullopt;
            }
            at = next + 1;
        }
        rows.push_back(row);
    }
    return rows;
}

json of(const std::vector<Holding>& holdings)
{
    Names names;
    std::vector<Row> rows;
    rows.reserve(holdings.size());
    for (const Holding& holding : holdings) {
        rows.push_back({names.place_of(holding.node), names.place_of(holding.model),
                        names.place_of(holding.called), holding.count, holding.job.value,
                        holding.uid, number_of(holding.since), number_of(holding.until)});
    }
    return {{"names", names.all()}, {"rows", text_of(rows)}};
}

std::optional<std::vector<Holding>> holdings_in(const json& value)
{
    const auto names = value.at("names").get<std::vector<std::string>>();
    const auto rows = rows_in(value.at("rows").get_ref<const std::string&>());
    const auto is_name = [&](std::int64_t place) {
        return place >= 0 && static_cast<std::size_t>(place) < names.size();
    };
    std::vector<Holding> holdings;
    for (const Row& row : rows.value_or(std::vector<Row>{})) {
        const auto& [node, model, called, count, job, uid, since, until] = row;
        if (!is_name(node) || !is_name(model) || !is_name(called)) {
            return std::nullopt;
        }
        const auto name = [&](std::int64_t place) {
            return names[static_cast<std::size_t>(place)];
        };
        holdings.push_back({name(node), name(model), static_cast<int>(count),
                            JobId{static_cast<std::uint32_t>(job)}, name(called),
                            static_cast<std::uint32_t>(uid), time_of(since), time_of(until)});
    }
    return rows ? std::optional(std::move(holdings)) : std::nullopt;
}

json document(const Overview& overview)
{
    return {{"v", k_version},
            {"cluster", overview.cluster},
            {"at", of(overview.at)},
            {"whole_at", of(overview.whole_at)},
            {"jobs_at", of(overview.jobs_at)},
            {"asked_at", of(overview.asked_at)},
            {"allowance", of(overview.allowance_used)},
            {"silent", overview.silent},
            {"queues", list_of(overview.queues)},
            {"pools", list_of(overview.pools)},
            {"waiting_jobs", overview.waiting ? json(overview.waiting->jobs) : json()},
            {"waiting_gpus", overview.waiting ? json(overview.waiting->gpus) : json()},
            {"jobs", list_of(overview.jobs)},
            {"holdings", of(overview.holdings)},
            {"reserved", list_of(overview.reserved)},
            {"uid", of(overview.uid)},
            {"took_ms", overview.took.count()},
            {"run_times", of(overview.run_times)}};
}

std::optional<Overview> overview_in(const json& value)
{
    Overview overview;
    overview.cluster = value.at("cluster").get<std::string>();
    overview.at = time_in(value.at("at"));
    overview.whole_at = time_in(value.at("whole_at"));
    overview.jobs_at = time_in(value.at("jobs_at"));
    overview.asked_at = time_in(value.at("asked_at"));
    overview.allowance_used = time_in(value.at("allowance"));
    overview.silent = value.at("silent").get<std::string>();
    for (const json& queue : value.at("queues")) {
        overview.queues.push_back(queue_in(queue));
    }
    for (const json& pool : value.at("pools")) {
        overview.pools.push_back(pool_in(pool));
    }
    if (const auto jobs = number_in(value.at("waiting_jobs"))) {
        overview.waiting = WaitingLine{*jobs, value.at("waiting_gpus").get<int>()};
    }
    for (const json& job : value.at("jobs")) {
        overview.jobs.push_back(job_in(job));
    }
    auto holdings = holdings_in(value.at("holdings"));
    if (!holdings) {
        return std::nullopt;
    }
    overview.holdings = std::move(*holdings);
    for (const json& reserved : value.at("reserved")) {
        overview.reserved.push_back(reserved_in(reserved));
    }
    if (const json& uid = value.at("uid"); !uid.is_null()) {
        overview.uid = uid.get<std::uint32_t>();
    }
    overview.took = std::chrono::milliseconds(value.at("took_ms").get<std::int64_t>());
    if (const auto times = value.find("run_times"); times != value.end()) { // not written before
        overview.run_times = run_times_in(*times);
    }
    return overview;
}

} // namespace

OwnJob kept_job(const Job& job)
{
    OwnJob own;
    own.job = job;
    own.job.outcome.reset();
    own.job.priority.reset();
    own.job.uid = 0;
    own.job.account.clear();
    own.job.qos.clear();
    own.job.size = JobSize{};
    own.job.size.nodes = job.size.nodes;
    own.job.size.gpus = job.size.gpus;
    own.job.size.share = job.size.share;
    return own;
}

std::string to_json(const Overview& overview)
{
    // Job names are bytes.
    return document(overview).dump(-1, ' ', true, json::error_handler_t::replace);
}

std::optional<Overview> overview_from_json(std::string_view text)
{
    try {
        const json value = json::parse(text);
        return value.at("v") == k_version ? overview_in(value) : std::nullopt;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

} // namespace gpuq
