// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/submission.h"

#include <string>

namespace gpuq::policy {

/// Whether Slurm may give the job other GPUs than gpu_totals() counts: it takes the last of two
/// counts of the same type in one string (--gres=gpu:3,gpu:1, --gpus-per-node=3 --gres=gpu:1),
/// reads `gpu:k80:+4` as four, searches for `gres:` anywhere in an item, and ignores items without
/// it (gres.c of 22.05 and 24.11). With --gpus=4 --gpus-per-socket=1 it gives only those of the
/// sockets, with --gpus=3 --gres=gpu:1 -n 2 -O only those of two nodes, and with a minimum of 0 and
/// a maximum of 4 nodes, which only a client of libslurm can request, the cores of more GPUs than
/// it gives (observed with 22.05). The job would get the cores and the memory that come with more
/// GPUs.
bool has_ambiguous_gpus(const Submission& job);

/// Whether a change names GPUs in another form than the job has them.
bool has_foreign_gpus(const Submission& before, const Submission& after);

/// The message for a job with ambiguous GPUs.
std::string no_ambiguous_gpus();

} // namespace gpuq::policy
