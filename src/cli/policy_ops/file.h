// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/output_file.h"
#include "cli/base/verb.h"
#include "policy/read.h"

#include <optional>
#include <string>

namespace gpuq::cli {

/// A policy and the file it was read from.
struct LoadedPolicy {
    std::string path;
    std::string text;
    policy::Reading reading;
    std::optional<Error> distrust = {}; ///< why it must not be put in force
};

/// Loads the policy in `path`; else in the file that $GPUQ_POLICY names; else in
/// /etc/gpuq/policy.yaml, which must belong to root and be writable by root only. `missing` if
/// there is none; `denied` for a file not given as `path` that other users may change.
Result<LoadedPolicy> load_policy(Services& services, const std::optional<std::string>& path);

/// The same, but a policy with errors is refused: `usage` with all findings, one per line.
Result<LoadedPolicy> load_valid_policy(Services& services, const std::optional<std::string>& path);

/// The same for a policy to be put in force: `denied` if other users may change the file.
Result<LoadedPolicy> load_obeyed_policy(Services& services, const std::optional<std::string>& path);

/// In the notation of courses, `2026-11-03T13:00`, and the time zone of this host.
std::string local_time(Time now);

/// The file given to a subcommand of `gpuq policy`, as its operand or with --policy.
Result<std::optional<std::string>> named_policy(const Invocation& invocation);

/// The file for --output; `usage` if it exists: none is ever replaced.
Result<OutputFile> new_policy_file(const std::string& path);

} // namespace gpuq::cli
