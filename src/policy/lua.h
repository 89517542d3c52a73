// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>

namespace gpuq::policy {

/// The job_submit.lua that says what `decide` says (Slurm: job_submit_plugins.shtml): a table made
/// of the policy, then a text that is always the same (job_submit.lua.inc). Lua 5.1 to 5.4. It
/// reads no file, keeps nothing between two jobs and does not raise.
///
/// To a job named `gpuq-policy-probe` it says `gpuq-policy VERSION` and refuses it: that is how one
/// sees which text slurmctld has loaded.
std::string job_submit_lua(const Policy& policy);

/// Of the text above: 16 hexadecimal digits that change with every change of it.
std::string lua_version(const Policy& policy);

/// A text as a Lua literal, whatever is in it.
std::string lua_literal(const std::string& text);

} // namespace gpuq::policy
