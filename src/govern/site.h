// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "govern/scene.h"

#include <string>
#include <vector>

/// The objects that a site manages itself, beside or instead of those of a policy.
namespace gpuq::govern {

/// A job_submit.lua without rules, for a site that had none.
constexpr std::string_view k_no_rules = "-- gpuq may replace this\n"
                                        "function slurm_job_submit(job, partitions, uid)\n"
                                        "    return slurm.SUCCESS\n"
                                        "end\n"
                                        "function slurm_job_modify(job, record, partitions, uid)\n"
                                        "    return slurm.SUCCESS\n"
                                        "end\n"
                                        "return slurm.SUCCESS\n";

/// The site's own job_submit.lua: the existing one if gpuq has not written it, else the copy that
/// the last `apply` kept; empty if there is none.
std::string script_of_site(const Texts& texts);

/// Adds the site's shares if a policy in force has its own and the candidate has none: then the
/// site's are put back.
void add_shares_of_site(const Scene& scene, Candidate& candidate);

/// The copy must not have been writable by others, and the script must be readable by all, because
/// the generated one is.
void require_site_script(const Scene& scene, const Candidate& candidate,
                         std::vector<std::string>& obstacles);

/// The site's own objects in Slurm: those that are neither the policy's nor its predecessor's, with
/// limits of accounts and users as objects, and the site's script.
std::vector<SlurmObject> objects_of_site(const Scene& scene,
                                         const std::vector<SlurmObject>& of_policy);

/// The differences between them and the `site` of the policy; none if it has no `site`. A
/// reservation that is over, and the start of the next occurrence of a repeated one, are none.
std::vector<Change> site_differences(const Scene& scene, const Candidate& candidate);

} // namespace gpuq::govern
