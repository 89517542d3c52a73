// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/slurm_object.h"
#include "ports/admin.h"

#include <string>
#include <vector>

namespace gpuq::govern {

/// A policy and all that is made of it.
struct Candidate {
    std::string text; ///< of the file
    std::string file; ///< its name, which is in the script: it tells people where a rule stands
    std::vector<SlurmObject> objects;
    std::string script;  ///< job_submit.lua
    std::string version; ///< of the script
    std::string now;     ///< for which courses are placed
};

/// `usage` with the first of its errors when the text is no sound policy; `file` serves messages.
/// A course's next time is told from `now`, local time as in `2026-11-03T13:00`; one that is over
/// is not wanted.
Result<Candidate> candidate_of(const std::string& text, const std::string& file,
                               const std::string& now);

/// The candidate beside what there is. A course that is on, and has no reservation that ends with
/// it, begins now for what is left of it or, when it is repeated, the next time: Slurm takes none
/// that began in the past.
Candidate placed_beside(const SlurmState& there, Candidate candidate);

/// The text with its name behind it, as it is kept; lines keep their numbers.
std::string kept(const Candidate& candidate);
/// Back from there; one without a name, which `gpuq cluster up --policy` keeps, is `policy.yaml`.
Result<Candidate> candidate_of_kept(const std::string& kept, const std::string& now);

/// When a course that began first at `start`, for so many minutes, is on next, or is on now;
/// nothing when it is over. `flag`: DAILY, WEEKDAY, WEEKLY or empty.
std::string next_start(const std::string& start, const std::string& flag, int duration,
                       const std::string& now);

} // namespace gpuq::govern
