// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/job.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuq::slurm {

/// Converts Slurm's state: a base state, possibly with the flag of a job whose processes are
/// ending.
JobState state_of(std::uint32_t state);

/// The exit status in a wait status; 128+N for signal N.
int exit_status_of_wait(std::uint32_t wait_status);

/// Converts Slurm's seconds; nullopt for 0 and Slurm's values for "none".
std::optional<Time> time_of(std::int64_t seconds);

/// GPUs in `cpu=4,mem=16G,gres/gpu=2,gres/gpu:k80=2`; nullopt if the text does not mention any.
/// `name`: of another generic resource.
std::optional<int> gpus_in_tres(std::string_view tres, std::string_view name = "gpu");

/// The running allocation that was requested with `comment`; `missing` if there is none.
Result<JobId> granted_with(const std::string& comment);

} // namespace gpuq::slurm
