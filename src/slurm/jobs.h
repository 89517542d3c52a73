// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuq::slurm {

/// Slurm's state word: a base state, perhaps with the flag of a job whose processes are ending.
JobState state_of(std::uint32_t state);

/// 128+N for signal N, out of a wait status.
int exit_status_of_wait(std::uint32_t wait_status);

/// Slurm's seconds; 0 and its words for "none" are nothing.
std::optional<Time> time_of(std::int64_t seconds);

/// GPUs in `cpu=4,mem=16G,gres/gpu=2,gres/gpu:k80=2`; nothing when the text does not mention any.
std::optional<int> gpus_in_tres(std::string_view tres);

/// The job whose request was sent with `comment` and granted; `missing` when there is none.
Result<JobId> granted_with(const std::string& comment);

} // namespace gpuq::slurm
