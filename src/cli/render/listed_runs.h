// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/status.h"

#include <map>
#include <optional>
#include <vector>

namespace gpuq::cli {

/// The runs to list.
class ListedRuns {
public:
    /// Newest first: active runs and those that ended within a day; with `want_all` every run on
    /// disk. The end of a run is read once.
    Result<std::vector<RunKey>> read(Store& store, bool want_all, Time now);

private:
    std::optional<Time> ended_at(Store& store, const RunKey& key);

    std::map<RunKey, Time> m_ended;
};

/// True for the remains of a run that Slurm refused, which are not listed.
bool is_nothing(const RunStatus& status);

} // namespace gpuq::cli
