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

// Files, by the names that Admin accepts (ports/admin.h).
constexpr const char* k_directory = "gpuq"; ///< the policy's directory
constexpr const char* k_include = "policy.conf";
constexpr const char* k_script = "job_submit.lua";
constexpr const char* k_site_script = "site.lua";   ///< called by the script
constexpr const char* k_applied = "applied.yaml";   ///< the policy in force
constexpr const char* k_previous = "previous.yaml"; ///< the policy before it
/// The hours that were open when the policy was put in force (policy/calendar.h); none without
/// hours.
constexpr const char* k_calendar = "calendar";
constexpr const char* k_failures = "advance.failed"; ///< of `advance`, since its last success
constexpr const char* k_journal = "journal";         ///< exists while a policy is being applied
constexpr const char* k_include_before = "policy.conf.before";
constexpr const char* k_script_before = "job_submit.lua.before";

/// The changes that a policy requires, and the obstacles to making them.
struct Plan {
    std::vector<Change> changes;
    /// The site's own objects that differ from the file, which gpuq does not change: `was` is the
    /// value in Slurm, `becomes` the one in the file.
    std::vector<Change> site;
    std::vector<std::string> obstacles;
    std::vector<std::string> notes;         ///< information for users that requires no change
    std::vector<std::string> leaving;       ///< unwanted partitions that may still have jobs
    std::optional<std::string> interrupted; ///< the step at which an `apply` was interrupted
};

Result<Plan> plan(Admin& admin, const Candidate& candidate, const std::string& now);

/// The same for the policy in force: every field that was changed by hand, with its current value
/// as `was` and the policy's as `becomes`; also generated files. The policy is compared as its
/// calendar has it at `now`; a note says if it has changed since the last `apply` or `advance`.
/// `missing` if no policy is in force.
Result<Plan> drift(Admin& admin, const std::string& now);

struct Applied {
    std::vector<Change> changes;
    std::vector<std::string> leaving; ///< as above; apply again when they are empty
};

/// Called with a description of each step before it is performed.
using StepReport = std::function<void(const std::string&)>;

/// Puts a policy in force. At any moment, the rules in force are at least as tight as those of the
/// previous policy or those of the new one:
///
/// 1. The new files are rehearsed; up to this point nothing is changed.
/// 2. QOS and the access to them become the tightest of both.
/// 3. Partitions become the tightest of both; those to be removed accept no more jobs.
/// 4. The script is replaced, and the controller confirms that it has loaded it.
/// 5. Partitions become the new ones.
/// 6. QOS and all other objects become the new ones; unwanted objects are removed.
///
/// The changes are derived from the actual state, so that applying again continues after a crash at
/// any point, and does nothing if nothing is left to do. If a step fails, the previous state is
/// restored. `denied` with all obstacles if there are any.
///
/// The site's own job_submit.lua is kept in k_site_script and called by the policy's script; a
/// policy without queues puts it back.
Result<Applied> apply(Admin& admin, const Candidate& candidate, const std::string& now,
                      const StepReport& report_step);

/// Puts the policy in force as its calendar has it at `now`, like `apply`; resumes an interrupted
/// application of it. Does nothing, without a request to Slurm, if no entry of the calendar has
/// opened or closed since the last one. `missing` if no policy is in force; `denied` if another
/// user could have written it, or if the application of another policy was interrupted. With a
/// pause, `busy` for 1, 2, 4 .. 16 minutes after each failure: an attempt reconfigures slurmctld,
/// some of them twice, and fills the audit log.
enum class Pause { none, after_failures };
Result<Applied> advance(Admin& admin, const std::string& now, const StepReport& report_step,
                        Pause pause = Pause::none);

/// Puts the previous policy in force; after an interrupted `apply`, the one in force before it.
/// `missing` if there is none; `denied` if another user could have written it.
Result<Applied> rollback(Admin& admin, const std::string& now, const StepReport& report_step);

} // namespace gpuq::govern
