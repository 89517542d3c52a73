// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// The words that srun executes on each node of a run of several, in front of the program's own:
/// `executable` (on every node by that path) as `member`. `folder`: of the link.
struct MemberPlan {
    std::string executable;
    std::string folder;
    std::string first_node; ///< the supervisor's, which it samples itself
    int gpus = 0;           ///< on each node
};
std::vector<std::string> member_words(const MemberPlan& plan);

/// Becomes the program of `member`'s words, with a process beside it that samples this node
/// (sampling.h) until the program's process is gone. Comes back only when it can't: with 126 or
/// 127, as a shell says it.
Result<int> become_member(const std::vector<std::string>& words, const std::string& node);

} // namespace gpuq::supervisor
