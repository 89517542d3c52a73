// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/status.h"

#include <optional>
#include <string>

/// The help desk's view of the jobs of others, by `gpuq show` and `gpuq why`.
namespace gpuq::cli {

/// If this account is the policy's helper and runs gpuq for the user who called sudo: the job whose
/// number is the only argument, as a plain job. `denied` unless it is the user's own or the user
/// may see it, which is recorded as `verb`. Nothing in other accounts. One RPC.
Result<std::optional<RunStatus>> job_for_desk(Invocation& invocation, const std::string& verb);

/// After `error` from the search for the only argument: runs the same verb as the helper, which
/// prints the result, if the argument is the number of a job that is not the user's and the user
/// may see it. Otherwise returns the error.
Result<int> show_by_helper(Invocation& invocation, const std::string& verb, const Error& error);

} // namespace gpuq::cli
