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

/// The runs to list without --all, newest first: active ones and those that ended recently.
std::vector<RunKey> recent(Store& store, const std::vector<RunKey>& all,
                           const std::vector<RunKey>& active, Time now)
{
    std::vector<RunKey> keys;
    for (const RunKey& key : all) {
        const auto age = now - key.made_at();
        if (age < k_recent ||
            std::binary_search(active.begin(), active.end(), key, std::greater<>())) {
            keys.push_back(key);
        } else if (age < k_oldest_recent) {
            const auto ending = read_ending(store, key);
            if (ending && now - ending->at < k_recent) {
                keys.push_back(key);
            }
        }
    }
    return keys;
}

} // namespace

Result<std::vector<RunKey>> listed_runs(Store& store, bool want_all, Time now)
{
    TRY_ASSIGN(std::vector<RunKey> all, all_runs(store));
    if (want_all) {
        return all;
    }
    TRY_ASSIGN(const std::vector<RunKey> active, active_runs(store));
    return recent(store, all, active, now);
}

bool is_nothing(const RunStatus& status)
{
    return !status.run && !status.job && !status.ending;
}

} // namespace gpuq::cli
