// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "govern/candidate.h"
#include "govern/plan.h"
#include "ports/admin.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::govern {

// Files in the policy's folder (ports/admin.h).
constexpr const char* k_folder = "gpuq"; ///< itself
constexpr const char* k_include = "policy.conf";
constexpr const char* k_script = "job_submit.lua";
constexpr const char* k_applied = "applied.yaml";   ///< the policy in force
constexpr const char* k_previous = "previous.yaml"; ///< the one before
constexpr const char* k_journal = "journal";        ///< there while a policy is being applied
constexpr const char* k_include_before = "policy.conf.before";
constexpr const char* k_script_before = "job_submit.lua.before";

/// What would be done, and what keeps it from being done.
struct Plan {
    std::vector<Change> changes;
    std::vector<std::string> obstacles;
    std::vector<std::string> notes;   ///< what people should know and need not change
    std::vector<std::string> leaving; ///< partitions that are no longer wanted and still have jobs
    std::optional<std::string> interrupted; ///< the step at which an `apply` was cut off
};

Result<Plan> plan(Admin& admin, const Candidate& candidate, const std::string& now);

/// The same for the policy in force: every field that somebody has changed by hand, `was` as it is
/// now, `becomes` as the policy says; a generated file too. `missing` when none is in force.
Result<Plan> drift(Admin& admin, const std::string& now);

struct Applied {
    std::vector<Change> changes;
    std::vector<std::string> leaving; ///< as above: to be applied again when they are empty
};

/// Told of each step before it is done.
using Tell = std::function<void(const std::string&)>;

/// Puts a policy in force. Whatever is in force at any moment is at least as tight as the policy
/// before or as the new one:
///
/// 1. the new files are rehearsed; nothing has been touched until then;
/// 2. QOS and who has them become the tightest of both;
/// 3. partitions become the tightest of both, those that are to go take no more jobs;
/// 4. the script becomes the new one, and the controller proves it;
/// 5. partitions become the new ones; 6. QOS and the rest; what nobody wants goes.
///
/// What is done is found by comparing with what is there, so that applying again goes on after a
/// crash at any point, and does nothing when nothing is left. When a step fails, what was there
/// before is put back. `denied` with all obstacles when there are any.
Result<Applied> apply(Admin& admin, const Candidate& candidate, const std::string& now,
                      const Tell& tell);

/// Puts the policy before in force; after an `apply` that was cut off, the one that was in force
/// then. `missing` when there was none.
Result<Applied> rollback(Admin& admin, const std::string& now, const Tell& tell);

} // namespace gpuq::govern
