// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/kept_forecasts.h"

#include "runs/insight/overview.h"

#include <map>
#include <string>

namespace gpuq::cli {

RunForecasts kept_forecasts(Store& store, const std::vector<RunStatus>& runs)
{
    RunForecasts found;
    std::map<std::string, Overview> overviews;
    for (const RunStatus& run : runs) {
        if (run.state != RunState::waiting || !run.job) {
            continue;
        }
        const auto [overview, is_new] = overviews.try_emplace(run.job->cluster);
        if (is_new) {
            overview->second = kept_overview(store, run.job->cluster);
        }
        for (const OwnJob& own : overview->second.jobs) {
            if (own.job.id == run.job->job && own.forecast) {
                found.insert_or_assign(run.key, *own.forecast);
            }
        }
    }
    return found;
}

} // namespace gpuq::cli
