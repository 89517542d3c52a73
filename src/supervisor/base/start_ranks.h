// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// Data about the ranks' step that only Slurm has.
struct RankPlaces {
    std::optional<std::string> address; ///< of a node, as other nodes reach it according to Slurm
    bool binds_cpus = false;            ///< the cluster binds tasks to cores by default
};
/// Queries Slurm about a node, or only about the cluster if the name is empty. May block.
using FindRankPlaces = std::function<RankPlaces(const std::string& node)>;

/// The command that starts `srun`, which in turn starts the ranks of a run whose first node is
/// `node`.
std::vector<std::string> start_ranks_arguments(const std::string& executable,
                                               const std::string& node,
                                               std::vector<std::string> srun);

/// Becomes the srun of `ranks NODE -- srun ...`, in a child process of the supervisor, whose loop
/// must not wait for Slurm. Sets MASTER_ADDR, where the ranks meet, unless it is already set: the
/// first node's address according to Slurm (NodeAddr), else its host name. The tasks of a node
/// share its CPUs. Returns only if srun cannot be executed.
Result<int> start_ranks(const std::vector<std::string>& arguments, const std::string& host,
                        const FindRankPlaces& find);

} // namespace gpuq::supervisor
