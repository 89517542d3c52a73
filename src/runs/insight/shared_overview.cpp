// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/shared_overview.h"

#include "core/number.h"
#include "runs/insight/overview_record.h"
#include "runs/insight/own_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view k_header = "gpuq-overview 1 ";
constexpr std::string_view k_end = "\nend\n";
/// A user without jobs: (uid_t)-1 is nobody's.
constexpr std::uint32_t k_no_user = std::numeric_limits<std::uint32_t>::max();
/// The service is left to run once late before its file counts as old.
constexpr auto k_slack = 15s;
constexpr auto k_longest_query = 60s;
constexpr std::uint64_t k_last_second = 9'000'000'000; // Time counts nanoseconds
/// Like that of a user (due): a slow query means a busy controller.
constexpr int k_rest = 20;

std::string_view take_line(std::string_view& text)
{
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

std::set<JobId> without_estimate(const std::vector<Job>& jobs)
{
    std::set<JobId> ids;
    for (const Job& job : jobs) {
        if (wants_estimate(job)) {
            ids.insert(job.id);
        }
    }
    return ids;
}

std::set<JobId> pending_of(const std::vector<Job>& jobs)
{
    std::set<JobId> ids;
    for (const Job& job : jobs) {
        if (could_start(job)) {
            ids.insert(job.id);
        }
    }
    return ids;
}

} // namespace

std::string shared_overview_text(const std::string& cluster, const Inventory& inventory,
                                 const AllJobs& all, std::vector<ReservedGpus> reserved,
                                 Time checked_at, Time now, std::chrono::milliseconds took,
                                 const RunTimes& run_times)
{
    Overview common = make_overview(cluster, inventory, all, k_no_user, now, run_times);
    common.uid.reset();
    common.reserved = std::move(reserved);
    common.took = took;
    const std::map<JobId, int> ahead = jobs_ahead(all);
    const StartEstimates estimates =
        expected_starts(without_estimate(all.jobs), all, inventory, now);
    const StartForecasts forecasts =
        forecast_starts(pending_of(all.jobs), all, inventory, common.run_times, now);
    note_forecasts(common.run_times.calibration, forecasts, now);
    std::map<std::uint32_t, Overview> users;
    for (const Job& job : all.jobs) {
        OwnJob own = kept_job(job);
        if (const auto found = ahead.find(job.id); found != ahead.end()) {
            own.ahead = found->second;
        }
        if (const auto found = estimates.find(job.id); found != estimates.end()) {
            own.estimate = found->second;
        }
        if (const auto found = forecasts.find(job.id); found != forecasts.end()) {
            own.forecast = found->second;
        }
        users[job.uid].jobs.push_back(std::move(own));
    }
    std::string text =
        fmt::format("{}{}\n{}", k_header,
                    std::chrono::floor<std::chrono::seconds>(checked_at).time_since_epoch().count(),
                    to_json(common));
    for (const auto& [uid, user] : users) {
        text += fmt::format("\n{} {}", uid, to_json(user));
    }
    return text.append(k_end);
}

std::optional<SharedOverview> parse_shared_overview(std::string_view text,
                                                    const std::string& cluster, std::uint32_t uid)
{
    if (!text.starts_with(k_header) || !text.ends_with(k_end)) {
        return std::nullopt;
    }
    const auto checked_at = whole_number(take_line(text).substr(k_header.size()));
    auto common = overview_from_json(take_line(text));
    if (!checked_at || *checked_at > k_last_second || !common || common->cluster != cluster ||
        !common->at || !common->whole_at) {
        return std::nullopt;
    }
    SharedOverview shared{*std::move(common), Time(std::chrono::seconds(*checked_at))};
    shared.overview.uid = uid;
    shared.overview.jobs.clear();
    const std::string mark = fmt::format("{} ", uid);
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        if (!line.starts_with(mark)) {
            continue;
        }
        auto user = overview_from_json(line.substr(mark.size()));
        if (!user) {
            return std::nullopt;
        }
        shared.overview.jobs = std::move(user->jobs);
    }
    std::vector<Job> mine;
    for (const OwnJob& own : shared.overview.jobs) {
        mine.push_back(own.job);
    }
    for (PoolUse& use : shared.overview.pools) {
        set_share(use, mine);
    }
    return shared;
}

std::chrono::milliseconds shared_pause(const Overview& overview)
{
    return std::max<std::chrono::milliseconds>(
        k_shared_again,
        k_rest * std::clamp<std::chrono::milliseconds>(overview.took, 0ms, k_longest_query));
}

bool is_recent(const Overview& shared, Time now)
{
    return shared.at && *shared.at <= now && now - *shared.at <= 2 * shared_pause(shared) + k_slack;
}

} // namespace gpuq
