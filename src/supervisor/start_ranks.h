// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// What only Slurm knows of the ranks' step.
struct RankPlaces {
    std::optional<std::string> address; ///< of a node, as Slurm's other nodes reach it
    bool binds_cpus = false;            ///< the cluster binds tasks to cores, unless told not to
};
/// Asks Slurm about a node, and about nothing of it when its name is empty. May block.
using FindRankPlaces = std::function<RankPlaces(const std::string& node)>;

/// The words that start `srun`, which starts the ranks of a run whose first node is `node`.
std::vector<std::string> start_ranks_words(const std::string& executable, const std::string& node,
                                           std::vector<std::string> srun);

/// Becomes the srun of `ranks NODE -- srun ...`, in a process of the supervisor's, whose loop must
/// not wait for Slurm. Tells the ranks where they meet, MASTER_ADDR, when nobody has yet: the first
/// node's address as Slurm has it (NodeAddr), else its host name. The tasks of a node share its
/// CPUs. Comes back only when there is no srun.
Result<int> start_ranks(const std::vector<std::string>& words, const std::string& host,
                        const FindRankPlaces& find);

} // namespace gpuq::supervisor
