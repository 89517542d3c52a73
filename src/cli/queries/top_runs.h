// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/top_rows.h"
#include "core/key.h"
#include "runs/insight/overview.h"
#include "runs/query_status.h"

#include <map>
#include <memory>
#include <vector>

/// The runs of `gpuq top`, from the disk alone.
namespace gpuq::cli {

/// Rereads runs, but those that are known to have ended, and how, only once. For one thread.
class TopRuns {
public:
    /// How runs that ended more than a day ago are returned. Their rows never change, and need less
    /// time and memory than their states.
    enum class Old { as_runs, as_rows };

    explicit TopRuns(Old old)
        : m_as_rows(old == Old::as_rows)
    {
    }

    struct Found {
        std::vector<RunStatus> runs; ///< without the client's environment
        std::vector<std::shared_ptr<const tui::RunRow>> old;
    };
    /// Both newest first, as `keys`. A run that ended after `overview` is no row: GPUs that it
    /// still holds there are free.
    Found read(const StatusSources& sources, const std::vector<RunKey>& keys,
               const Overview& overview, Time now);

private:
    void query(const StatusSources& sources, const std::vector<RunKey>& keys);
    void age(const Overview& overview, Time now);
    bool is_old(const RunStatus& run, const Overview& overview, Time now) const;

    bool m_as_rows;
    std::map<RunKey, RunStatus> m_active; ///< as last read: not known to have ended
    std::map<RunKey, RunStatus> m_ended;
    std::map<RunKey, std::shared_ptr<const tui::RunRow>> m_old;
};

} // namespace gpuq::cli
