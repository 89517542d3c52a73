// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"

#include <set>
#include <string>
#include <vector>

/// The include file of slurm.conf as text.
namespace gpuq::govern {

/// Partitions that a file of ours names.
std::set<std::string> partitions_of(const std::string& include);

/// Partitions that take no more jobs: they leave when they are empty.
std::set<std::string> leaving_of(const std::string& include);

/// The file for these objects, and behind them the lines of `before` with the partitions
/// `leaving`: they start what they have, and take nothing new.
std::string include_of(const std::vector<SlurmObject>& objects, const std::string& before,
                       const std::set<std::string>& leaving);

/// QOS that the file names.
std::set<std::string> qos_named_in(const std::string& include);

} // namespace gpuq::govern
