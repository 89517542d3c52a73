// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/use_records.h"

#include <map>
#include <string>
#include <string_view>

namespace gpuq::slurm {

/// slurmdbd's names of trackable resources: `1002` -> `gres/gpu:k80`.
using TresNames = std::map<std::uint32_t, std::string>;

/// Adds the GPUs of an allocation (`1=4,2=16384,1001=2,1002=2`) to `use`.
void add_gpus(JobUse& use, std::string_view allocation, const TresNames& names);

/// JobUse::lab, from the parent of each account, which is empty for the root.
std::string lab_of(const std::string& account, const std::map<std::string, std::string>& parents);

/// The memory in such a list or in one of resources used by steps; nullopt if it is absent or not a
/// number.
std::optional<std::uint64_t> memory_in(std::string_view resources, const TresNames& names);

} // namespace gpuq::slurm
