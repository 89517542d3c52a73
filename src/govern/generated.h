// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <map>
#include <set>
#include <string>
#include <vector>

/// The text of the generated file that slurm.conf includes.
namespace gpuq::govern {

/// The partitions defined in a generated file.
std::set<std::string> partitions_of(const std::string& include);

/// Partitions that accept no more jobs and are removed when their jobs have ended, each with the
/// time since which no job was submitted to it; empty: not known yet.
using Leaving = std::map<std::string, std::string>;
Leaving leaving_of(const std::string& include);

/// The partitions of `unwanted` that must stay because a job may have been submitted to them. A job
/// running in another partition of the same queue counts, since it could be killed (ports/admin.h,
/// QueuedJob); a job submitted after the time in Leaving does not.
Leaving still_used(const std::string& include, const std::set<std::string>& unwanted,
                   const std::vector<QueuedJob>& jobs);

/// The file for these objects, followed by the lines of `before` for the partitions in `leaving`,
/// which start their pending jobs but accept no new ones.
std::string include_of(const std::vector<SlurmObject>& objects, const std::string& before,
                       const Leaving& leaving);

/// The QOS named in the file.
std::set<std::string> qos_named_in(const std::string& include);

} // namespace gpuq::govern
