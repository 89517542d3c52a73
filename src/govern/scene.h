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

/// The existing state, as found by read_scene().
struct Scene {
    SlurmState actual; ///< including the loaded script
    Texts texts;
    std::vector<SlurmObject> owned; ///< of the policy in force, and of an interrupted one
    std::optional<std::string> applied;
    std::optional<std::string> previous;
    std::optional<std::string> interrupted; ///< the step
    /// The interrupted apply has made its policy the applied one: `previous` is the one before.
    bool is_committed = false;
    /// Files of gpuq whose owner or permissions differ from those they were written with.
    std::map<std::string, std::vector<FieldChange>> touched;
    std::set<std::string> forgeable; ///< those of them that another user could write

    /// Whether the file's text is known to be written by gpuq.
    bool believes(const std::string& name) const
    {
        return !forgeable.contains(name) && !forgeable.contains(k_directory);
    }
};

Result<Scene> read_scene(Admin& admin, const std::string& now);

/// Adapts the candidate to the existing state: reservations as in placed_next_to(), and a script
/// that calls the site's own, or that is the site's own if the policy has no queues.
Candidate fitted(const Scene& scene, const Candidate& candidate);

/// changes() from `actual` to the candidate. The limits of accounts and users are left alone if the
/// file lists them as the site's.
std::vector<Change> changes_for(const Scene& scene, const Candidate& candidate,
                                const SlurmState& actual);

/// The changes from the scene to the candidate. Queries the jobs of partitions to be removed.
Result<Plan> plan_of(Admin& admin, const Scene& scene, const Candidate& candidate);

/// The partitions in the existing include file that the candidate does not have.
std::set<std::string> unwanted_partitions(const Scene& scene, const Candidate& candidate);

/// The step of a journal that is written before another policy becomes the applied one.
constexpr const char* k_commit_step = "commit";

/// The current step, and the policy being applied, which may already have made reservations.
struct Journal {
    std::string step;
    std::string policy;
};
std::string to_text(const Journal& journal);
std::optional<Journal> journal_of(const std::string& text);

} // namespace gpuq::govern
