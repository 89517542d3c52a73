// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/link_tmp.h"
#include "supervisor/program.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// What a task of Slurm's is told, on each node of a run of several ranks.
struct MemberPlan {
    std::string executable; ///< on every node by that path
    std::string folder;     ///< of the link
    std::string first_node; ///< the supervisor's, which it samples itself
    int gpus = 0;           ///< on each node
    int tasks = 1;          ///< on each node
    int gpus_per_task = 0;  ///< 0: each sees all of its node's
    std::string tmp;        ///< TMPDIR on the first node; empty: none of gpuq's
};

/// The words in front of the program's own: `executable` as `member`.
std::vector<std::string> member_words(const MemberPlan& plan);

/// Tells a task which rank it is, by the names of torch and of Lightning, out of Slurm's
/// variables; a task that is to have GPUs of its own sees only these. What the user has set stays.
void describe_rank(Environment& variables, const MemberPlan& plan);

/// Runs the program of `member`'s words as this task's rank and ends as it did, by the same status
/// or signal. Its output is also kept apart (rank_output.h). The first task of a node but the first
/// samples it (sampling.h). Leaves notes for the supervisor (rank_notes.h): the first rank that
/// fails, and kills for memory. A rank that asks to be continued (85) or not (93) ends with 0 for
/// Slurm, which would kill the others, still saving. On the first node its TMPDIR is the link's; on
/// another it gets one of its own (link_tmp.h), which goes with it. Comes back in the program's
/// place only when that can't be executed: with 126 or 127, as a shell says it.
Result<int> become_member(const std::vector<std::string>& words, const std::string& node,
                          const RemoveTree& remove_tree);

} // namespace gpuq::supervisor
