// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <map>
#include <string>
#include <string_view>

namespace gpuq::slurm {

/// What slurmdbd calls its trackable resources: `1002` -> `gres/gpu:k80`.
using TresNames = std::map<std::uint32_t, std::string>;

/// Puts the GPUs of an allocation (`1=4,2=16384,1001=2,1002=2`) into `use`.
void add_gpus(JobUse& use, std::string_view allocation, const TresNames& names);

/// A use as one line of text, from a child process to its parent, and back.
std::string to_line(const JobUse& use);
JobUse use_of_line(const std::string& line);

} // namespace gpuq::slurm
