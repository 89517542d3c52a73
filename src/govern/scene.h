// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "govern/apply.h"
#include "govern/obstacles.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpuq::govern {

/// Everything that was there when one looked.
struct Scene {
    SlurmState there; ///< with the loaded script
    Texts texts;
    std::vector<SlurmObject> owned; ///< what policies before, or one that was cut off, have made
    std::optional<std::string> applied;
    std::optional<std::string> previous;
    std::optional<std::string> interrupted; ///< a step
    /// Files of ours with another owner or other permissions than they were written with.
    std::map<std::string, std::vector<FieldChange>> touched;
    std::set<std::string> forgeable; ///< those of them that somebody else could write

    /// Is its text what gpuq wrote?
    bool believes(const std::string& name) const
    {
        return !forgeable.contains(name) && !forgeable.contains(k_folder);
    }
};

Result<Scene> look(Admin& admin, const std::string& now);

/// What leads from there to the candidate. Asks for the jobs of partitions that are to go.
Result<Plan> plan_of(Admin& admin, const Scene& scene, const Candidate& candidate);

/// Those of the file that is there which the candidate does not want.
std::set<std::string> unwanted_partitions(const Scene& scene, const Candidate& candidate);

/// The step, and the policy that was being applied: it may have made reservations.
struct Journal {
    std::string step;
    std::string policy;
};
std::string to_text(const Journal& journal);
std::optional<Journal> journal_of(const std::string& text);

} // namespace gpuq::govern
