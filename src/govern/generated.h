// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <map>
#include <set>
#include <string>
#include <vector>

/// The include file of slurm.conf as text.
namespace gpuq::govern {

/// Partitions that a file of ours names.
std::set<std::string> partitions_of(const std::string& include);

/// Partitions that take no more jobs and leave when those they have are over, each with the time
/// from which on no job was submitted to it; empty: nobody has told yet.
using Leaving = std::map<std::string, std::string>;
Leaving leaving_of(const std::string& include);

/// Those of `unwanted` that have to stay: a job may have been submitted to them. One that runs
/// elsewhere in the same queue may, too, and would be killed (ports/admin.h, QueuedJob); one that
/// was submitted since then may not.
Leaving still_used(const std::string& include, const std::set<std::string>& unwanted,
                   const std::vector<QueuedJob>& jobs);

/// The file for these objects, and behind them the lines of `before` with the partitions
/// `leaving`: they start what they have, and take nothing new.
std::string include_of(const std::vector<SlurmObject>& objects, const std::string& before,
                       const Leaving& leaving);

/// QOS that the file names.
std::set<std::string> qos_named_in(const std::string& include);

} // namespace gpuq::govern
