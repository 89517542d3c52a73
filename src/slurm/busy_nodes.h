// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Explains why Slurm refuses a reservation of busy nodes; pure.
namespace gpuq::slurm {

/// A job that holds nodes.
struct HoldingJob {
    std::string id;
    std::string user;
    std::string nodes;
    std::string end; ///< local time of its limit: `2026-12-07T18:00:00`; `NONE` without one
    bool operator==(const HoldingJob&) const = default;
};

/// Parses `squeue -h -a -t R,S -w NODES -o "%A|%u|%N|%e"`. Returns the jobs that may run past
/// `start`, sorted by end.
std::vector<HoldingJob> holding_past(std::string_view start, std::string_view printed);

/// Names the jobs that block a reservation starting at `start`, until when, and the remedies. If
/// there are none, reports that the obstacle is gone.
std::string way_out(const std::string& reservation, const std::string& start,
                    const std::vector<HoldingJob>& jobs);

} // namespace gpuq::slurm
