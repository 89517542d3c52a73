// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/top_runs.h"

#include "runs/evidence.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_day = 24h;
/// The files of a run are large compared with its row: only as many are in memory together.
constexpr std::size_t k_together = 256;

/// `keys`: newest first.
bool is_in(const std::vector<RunKey>& keys, const RunKey& key)
{
    return std::binary_search(keys.begin(), keys.end(), key, std::greater<>());
}

template <typename Value>
void forget_all_but(const std::vector<RunKey>& keys, std::map<RunKey, Value>& known)
{
    std::erase_if(known, [&](const auto& one) { return !is_in(keys, one.first); });
}

} // namespace

TopRuns::Found TopRuns::read(const StatusSources& sources, const std::vector<RunKey>& keys,
                             const Overview& overview, Time now)
{
    const auto active = active_runs(sources.store); // includes resumed runs
    m_active.clear();
    age(overview, now);
    std::vector<RunKey> unsettled;
    for (const RunKey& key : keys) {
        const bool is_settled = m_ended.contains(key) || m_old.contains(key);
        if (!is_settled || !active || is_in(*active, key)) {
            unsettled.push_back(key);
        }
    }
    for (std::size_t i = 0; i < unsettled.size(); i += k_together) {
        const auto first = unsettled.begin() + static_cast<std::ptrdiff_t>(i);
        const auto count = static_cast<std::ptrdiff_t>(std::min(k_together, unsettled.size() - i));
        query(sources, {first, first + count});
        age(overview, now);
    }
    if (m_ended.size() + m_old.size() > keys.size()) { // some are no longer listed
        forget_all_but(keys, m_ended);
        forget_all_but(keys, m_old);
    }
    Found found;
    for (const RunKey& key : keys) {
        if (const auto old = m_old.find(key); old != m_old.end()) {
            found.old.push_back(old->second);
        } else if (const auto ended = m_ended.find(key); ended != m_ended.end()) {
            found.runs.push_back(ended->second);
        } else {
            found.runs.push_back(std::move(m_active.at(key)));
        }
    }
    return found;
}

void TopRuns::query(const StatusSources& sources, const std::vector<RunKey>& keys)
{
    for (RunStatus& run : query_status(sources, keys, SlurmQuery::never).runs) {
        if (run.run) {
            run.run->environment = {}; // not shown, and the largest part of a record
        }
        m_ended.erase(run.key);
        m_old.erase(run.key); // a resumed run is detected when it is listed as active
        auto& known = run.state == RunState::ended && run.ending ? m_ended : m_active;
        const RunKey key = run.key;
        known.insert_or_assign(key, std::move(run));
    }
}

/// Replaces the runs that ended long ago by their rows.
void TopRuns::age(const Overview& overview, Time now)
{
    std::vector<RunStatus> old;
    for (auto at = m_ended.begin(); at != m_ended.end();) {
        if (is_old(at->second, overview, now)) {
            old.push_back(std::move(at->second));
            at = m_ended.erase(at);
        } else {
            ++at;
        }
    }
    std::vector<tui::RunRow> rows = top_rows(old, overview, now);
    for (std::size_t i = 0; i < old.size(); ++i) {
        m_old.emplace(old[i].key, std::make_shared<const tui::RunRow>(std::move(rows[i])));
    }
}

/// On the day on which it ended, a row has the time without the date.
bool TopRuns::is_old(const RunStatus& run, const Overview& overview, Time now) const
{
    return m_as_rows && now - run.ending->at > k_day &&
           (!overview.jobs_at || *overview.jobs_at > run.ending->at);
}

} // namespace gpuq::cli
