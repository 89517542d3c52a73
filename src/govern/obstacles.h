// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::govern {

/// Texts that are there before a policy is applied.
struct Texts {
    std::string include; ///< empty: none yet
    std::string script;
    std::string include_path;
    std::string slurm_conf_path;
    std::string script_path;
    /// The site's own by path: slurm.conf, what it includes, and what that includes.
    std::map<std::string, std::string> site;
    bool include_is_read = false; ///< one of them includes ours
};

/// What keeps a policy from being applied, each a sentence that says what to do: all of it is the
/// site's own, which gpuq does not touch. Requirements that slurm.conf does not meet, the line
/// that includes our file, accounts and users that accounting does not know, nodes that are not
/// there, partitions and settings that slurm.conf itself has, partitions of its own, or of
/// a file that it includes, that lead to the policy's nodes, a job_submit.lua that is not ours.
std::vector<std::string> obstacles(const std::vector<SlurmObject>& wanted, const SlurmState& there,
                                   const Texts& texts);

/// What is no obstacle, and yet no rule of the policy's: partitions that would lead to its nodes if
/// somebody opened them, limits on accounts and users that are tighter than its own may be.
std::vector<std::string> notes(const std::vector<SlurmObject>& wanted, const SlurmState& there,
                               const Texts& texts);

/// Adds what the policy could state about the nodes' hardware, for who is about to apply it.
void add_hardware_notes(const std::vector<SlurmObject>& wanted, const SlurmState& there,
                        std::vector<std::string>& list);

/// Of these only the settings that slurm.conf lacks. `slurm_conf_path` serves the sentences.
std::vector<std::string> missing_settings(const std::vector<SlurmObject>& wanted,
                                          const SlurmState& there,
                                          const std::string& slurm_conf_path);

/// The first line of a job_submit.lua that a policy may replace.
constexpr std::string_view k_yields = "-- gpuq may replace this";

/// One that `gpuq policy apply` has written, or may replace; none at all, too.
bool is_ours(std::string_view script);

} // namespace gpuq::govern
