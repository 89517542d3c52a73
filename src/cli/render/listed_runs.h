// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/status.h"

#include <chrono>
#include <map>
#include <optional>
#include <vector>

namespace gpuq::cli {

/// The runs to list.
class ListedRuns {
public:
    /// Newest first: active runs and those that ended within a day; with `want_all` every run on
    /// disk. The end of a run is read once. The directory of all runs is read when the active runs
    /// have changed, and after a time that depends on their number: two seconds for 2,000 of them,
    /// ten for 10,000, at most a minute.
    Result<std::vector<RunKey>> read(Store& store, bool want_all, Time now);

private:
    Result<std::vector<RunKey>> read_directory(Store& store, bool want_all, Time now);
    std::optional<Time> ended_at(Store& store, const RunKey& key);

    std::map<RunKey, Time> m_ended;
    std::vector<RunKey> m_active;        ///< as last read
    std::vector<RunKey> m_keys;          ///< the last result
    std::optional<Time> m_read_at;       ///< the directory
    std::chrono::milliseconds m_pause{}; ///< until it is read again
};

/// True for the remains of a run that Slurm refused, which are not listed.
bool is_nothing(const RunStatus& status);

} // namespace gpuq::cli
