// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "policy/read.h"

#include <optional>
#include <string>

namespace gpuq::cli {

/// A policy and where it was found.
struct LoadedPolicy {
    std::string path;
    std::string text;
    policy::Reading reading;
    std::optional<Error> distrust = {}; ///< why it must not be obeyed
};

/// The policy in `path`; else the one that $GPUQ_POLICY names; else /etc/gpuq/policy.yaml, which
/// has to belong to root and be writable by no one else. `missing` without any.
Result<LoadedPolicy> load_policy(Doors& doors, const std::optional<std::string>& path);

/// The same, refusing one with errors: `usage` with all of them, a line each.
Result<LoadedPolicy> load_valid_policy(Doors& doors, const std::optional<std::string>& path);

/// The same of a policy that is to be put in force: `denied` when others may change the file.
Result<LoadedPolicy> load_obeyed_policy(Doors& doors, const std::optional<std::string>& path);

/// As courses are written, `2026-11-03T13:00`: the controller's host is this one.
std::string local_time(Time now);

/// The file that a part of `gpuq policy` was given, as its operand or with --policy.
Result<std::optional<std::string>> named_policy(const Invocation& invocation);

} // namespace gpuq::cli
