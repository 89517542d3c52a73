// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/listed_runs.h"

#include "runs/evidence.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

/// Runs that ended within this time are listed without --all.
constexpr auto k_recent = 24h;
/// The end of an older run is not checked: no queue is that long.
constexpr auto k_oldest_recent = std::chrono::days(30);

} // namespace

Result<std::vector<RunKey>> ListedRuns::read(Store& store, bool want_all, Time now)
{
    TRY_ASSIGN(std::vector<RunKey> all, all_runs(store));
    if (want_all) {
        return all;
    }
    TRY_ASSIGN(const std::vector<RunKey> active, active_runs(store));
    std::vector<RunKey> keys;
    for (const RunKey& key : all) {
        const auto age = now - key.made_at();
        if (std::binary_search(active.begin(), active.end(), key, std::greater<>())) {
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
