// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::govern {

/// The existing texts, before a policy is applied.
struct Texts {
    std::string include; ///< empty: none yet
    std::string script;
    std::string site_script;      ///< kept by the last `apply`
    bool script_is_public = true; ///< readable by all users
    std::string include_path;
    std::string slurm_conf_path;
    std::string script_path;
    /// The site's own files, by path: slurm.conf and all files included, directly or indirectly.
    std::map<std::string, std::string> site;
    bool include_is_read = false; ///< true if one of them includes the policy's file
};

/// Reasons why a policy can't be applied, each a sentence with the remedy. Most concern the site's
/// own configuration, which gpuq does not change: requirements that slurm.conf does not meet, the
/// missing line that includes gpuq's file, accounts and users unknown to accounting, missing nodes,
/// partitions and settings of the policy that slurm.conf defines itself, partitions of the site
/// that lead to the policy's nodes. Nodes with more threads per core than the policy assumes are an
/// obstacle, too. A policy without queues has none.
std::vector<std::string> obstacles(const std::vector<SlurmObject>& desired,
                                   const SlurmState& actual, const Texts& texts);

/// Facts that are no obstacle, but bypass the policy: closed partitions that would lead to its
/// nodes if they were opened, and limits on accounts and users, which may be tighter than its own.
std::vector<std::string> notes(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                               const Texts& texts);

/// Adds properties of the nodes' hardware that the policy could specify, for an administrator who
/// is about to apply it.
void add_hardware_notes(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                        std::vector<std::string>& list);

/// Only the requirements that slurm.conf does not meet. `slurm_conf_path` is used in the sentences.
std::vector<std::string> missing_settings(const std::vector<SlurmObject>& desired,
                                          const SlurmState& actual,
                                          const std::string& slurm_conf_path);

/// The first line of a site's job_submit.lua that a policy may replace.
constexpr std::string_view k_yields = "-- gpuq may replace this";

/// The beginning of a script that `gpuq policy apply` has written.
constexpr std::string_view k_generated = "-- Made by `gpuq policy apply`";

/// True for a script that `gpuq policy apply` has written or may replace, and for an empty one.
bool is_ours(std::string_view script);

} // namespace gpuq::govern
