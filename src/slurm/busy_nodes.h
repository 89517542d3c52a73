// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Why Slurm makes no reservation of nodes that are busy; pure.
namespace gpuq::slurm {

/// A job that holds nodes.
struct HoldingJob {
    std::string id;
    std::string user;
    std::string nodes;
    std::string end; ///< by its limit, local time: `2026-12-07T18:00:00`; `NONE`: it has none
    bool operator==(const HoldingJob&) const = default;
};

/// `squeue -h -a -t R,S -w NODES -o "%A|%u|%N|%e"`; those that may run past `start`, the last to
/// end last.
std::vector<HoldingJob> holding_past(std::string_view start, std::string_view printed);

/// Which jobs stand in the way of a reservation that begins at `start`, until when, and what to do.
/// Without any, that what was in the way has gone.
std::string way_out(const std::string& reservation, const std::string& start,
                    const std::vector<HoldingJob>& jobs);

} // namespace gpuq::slurm
