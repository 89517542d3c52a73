// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>

namespace gpuq::policy {

/// The job_submit.lua that implements `decide` (Slurm: job_submit_plugins.shtml): a table generated
/// from the policy, followed by a constant text (job_submit.lua.inc). For Lua 5.1 to 5.4. It reads
/// no file, keeps no state between jobs and raises no error.
///
/// It refuses a job named `gpuq-policy-probe` with the message `gpuq-policy VERSION`, which shows
/// the text that slurmctld has loaded.
std::string job_submit_lua(const Policy& policy);

/// The version of the script above: 16 hexadecimal digits that change whenever it changes.
std::string lua_version(const Policy& policy);

/// The same script, which in addition calls the functions of the site's own job_submit.lua before
/// its own decision: their refusals and their changes to a job count. They run with global
/// variables of their own.
struct CombinedScript {
    std::string text;
    std::string version;
};
CombinedScript with_site_script(const std::string& script, const std::string& site);

/// Identifies the text of a script: 16 hexadecimal digits.
std::string script_version(const std::string& text);

/// A text of any content as a Lua literal.
std::string lua_literal(const std::string& text);

} // namespace gpuq::policy
