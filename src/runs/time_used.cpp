// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/time_used.h"

#include <algorithm>

namespace gpuq {

std::optional<std::chrono::seconds> time_used(const RunStatus& status, Time now)
{
    using std::chrono::seconds;
    const bool over = status.state == RunState::ended;
    if (status.state == RunState::unknown || (over && !status.ending)) {
        return std::nullopt;
    }
    const bool is_chain = status.run && status.run->request.chain;
    if (is_chain && status.links.size() > 1) {
        return time_used(status.links, over ? status.ending->at : now);
    }
    if (!status.started_at) {
        return std::nullopt;
    }
    const Time until = over ? status.ending->at : now;
    return std::max(seconds(0), std::chrono::floor<seconds>(until - *status.started_at));
}

} // namespace gpuq
