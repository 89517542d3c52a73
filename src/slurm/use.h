// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/use_records.h"

#include <map>
#include <string>
#include <string_view>

namespace gpuq::slurm {

/// What slurmdbd calls its trackable resources: `1002` -> `gres/gpu:k80`.
using TresNames = std::map<std::uint32_t, std::string>;

/// Puts the GPUs of an allocation (`1=4,2=16384,1001=2,1002=2`) into `use`.
void add_gpus(JobUse& use, std::string_view allocation, const TresNames& names);

/// The memory in the same, or in what steps have used, by its name; nothing when it is not there
/// or no number.
std::optional<std::uint64_t> memory_in(std::string_view resources, const TresNames& names);

/// A record as one line of text, from a child process to its parent, and back.
std::string to_line(const UseRecord& record);
UseRecord record_of_line(const std::string& line);

} // namespace gpuq::slurm
