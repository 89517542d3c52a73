// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/listed_runs.h"

#include "runs/evidence.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

/// Runs that ended within this time are listed without --all.
constexpr auto k_recent = 24h;
/// The end of an older run is not checked: no queue is that long.
constexpr auto k_oldest_recent = std::chrono::days(30);
/// Pause before the directory of all runs is read again, for each of them.
constexpr auto k_pause = 1ms;
constexpr std::chrono::milliseconds k_longest_pause = 60s;

} // namespace

Result<std::vector<RunKey>> ListedRuns::read(Store& store, bool want_all, Time now)
{
    TRY_ASSIGN(std::vector<RunKey> active, active_runs(store));
    const bool is_recent = m_read_at && now >= *m_read_at && now - *m_read_at < m_pause;
    if (!is_recent || active != m_active) {
        m_read_at.reset();
        m_active = std::move(active);
        TRY_ASSIGN(m_keys, read_directory(store, want_all, now));
        m_read_at = now;
    }
    return m_keys;
}

Result<std::vector<RunKey>> ListedRuns::read_directory(Store& store, bool want_all, Time now)
{
    TRY_ASSIGN(std::vector<RunKey> all, all_runs(store));
    m_pause = std::min(static_cast<int>(all.size()) * k_pause, k_longest_pause);
    if (want_all) {
        return all;
    }
    std::vector<RunKey> keys;
    for (const RunKey& key : all) {
        const auto age = now - key.made_at();
        if (std::binary_search(m_active.begin(), m_active.end(), key, std::greater<>())) {
            m_ended.erase(key); // it may have been resumed
            keys.push_back(key);
        } else if (age < k_recent) {
            keys.push_back(key);
        } else if (age < k_oldest_recent) {
            const auto at = ended_at(store, key);
            if (at && now - *at < k_recent) {
                keys.push_back(key);
            }
        }
    }
    return keys;
}

std::optional<Time> ListedRuns::ended_at(Store& store, const RunKey& key)
{
    const auto known = m_ended.find(key);
    if (known != m_ended.end()) {
        return known->second;
    }
    const auto ending = read_ending(store, key);
    if (!ending) {
        return std::nullopt;
    }
    m_ended.emplace(key, ending->at);
    return ending->at;
}

bool is_nothing(const RunStatus& status)
{
    return !status.run && !status.job && !status.ending;
}

} // namespace gpuq::cli
