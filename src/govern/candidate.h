// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/slurm_object.h"
#include "policy/policy.h"
#include "ports/admin.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::govern {

/// A policy and everything generated from it.
struct Candidate {
    std::string text; ///< of the policy file
    std::string file; ///< its name; the script contains it so that users can find a rule
    std::vector<SlurmObject> objects;
    std::string script;  ///< job_submit.lua
    std::string version; ///< of the script
    std::string now;     ///< the time for which courses are placed
    std::optional<policy::Site> site;
    std::string generated;   ///< the script without the site's
    std::string site_script; ///< which `script` calls, or which it is; see fitted() in scene.h
    /// False for a policy that only describes the site's objects: its script is the site's own.
    bool has_queues = false;
    /// The hours that are open at `now`, as in policy/calendar.h; nullopt: the policy has no hours.
    std::optional<std::string> open_hours;
    /// The partitions that are closed at `now`, and how long their jobs may still run.
    std::map<std::string, std::chrono::seconds> closed;
};

/// The policy with its values at `now`. `usage` with the first error if the text is not a valid
/// policy; `file` is used in messages. The next occurrence of a course is computed from `now`,
/// local time as in `2026-11-03T13:00`; courses that are over are left out.
Result<Candidate> candidate_of(const std::string& text, const std::string& file,
                               const std::string& now);

/// Adapts the candidate to the existing reservations. A course in progress without a reservation
/// that ends with it starts now with its remaining time or, if it repeats, at its next occurrence:
/// Slurm accepts no start in the past.
Candidate placed_next_to(const SlurmState& actual, Candidate candidate);

/// The text followed by the file name, as stored on disk; line numbers do not change.
std::string kept(const Candidate& candidate);
/// The inverse of kept(). A text without a name, as stored by `gpuq cluster up --policy`, gets the
/// name `policy.yaml`.
Result<Candidate> candidate_of_kept(const std::string& kept, const std::string& now);

/// The start of the current or next occurrence of a course that first starts at `start` and lasts
/// `duration` minutes; empty if it is over. `flag`: DAILY, WEEKDAY, WEEKLY or empty.
std::string next_start(const std::string& start, const std::string& flag, int duration,
                       const std::string& now);

} // namespace gpuq::govern
