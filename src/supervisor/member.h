// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/base/link_tmp.h"
#include "supervisor/base/program.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// Parameters of a Slurm task, on each node of a run with several ranks.
struct MemberPlan {
    std::string executable; ///< the same path on every node
    std::string directory;  ///< the directory of the link
    std::string first_node; ///< the supervisor's node, sampled by the supervisor itself
    int gpus = 0;           ///< on each node
    int tasks = 1;          ///< on each node
    int gpus_per_task = 0;  ///< 0: each task sees all GPUs of its node
    std::string tmp;        ///< TMPDIR on the first node; empty: not set by gpuq
};

/// The arguments that precede the program's own: `executable` run as `member`.
std::vector<std::string> member_arguments(const MemberPlan& plan);

/// Sets a task's rank in the variables of torch and of Lightning, from Slurm's variables. A task
/// with GPUs of its own sees only these. Variables set by the user are kept.
void describe_rank(Environment& variables, const MemberPlan& plan);

/// Runs the program in `member`'s arguments as this task's rank, and ends with the program's exit
/// status or signal. Output is also saved per rank (rank_output.h). On nodes other than the first,
/// the first task samples the node (sampling.h). Leaves notes for the supervisor (rank_notes.h):
/// the first rank that fails, and kills for memory. A rank that asks to be continued (85) or not
/// (93) ends with 0 for Slurm, which would otherwise kill the other ranks while they save. On the
/// first node the program's TMPDIR is the link's; on other nodes each task gets one of its own
/// (link_tmp.h), removed at the end. In the forked child the call returns only if the program
/// cannot be executed: with an error that means exit status 126 or 127, as from a shell.
Result<int> become_member(const std::vector<std::string>& arguments, const std::string& node,
                          const RemoveTree& remove_tree);

} // namespace gpuq::supervisor
