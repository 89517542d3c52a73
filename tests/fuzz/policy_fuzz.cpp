// SPDX-License-Identifier: GPL-2.0-or-later
#include "lua/submit_script.h"
#include "policy/cases.h"
#include "policy/check.h"
#include "policy/lua.h"
#include "policy/objects.h"
#include "policy/read.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace gpuq;

/// Any text can be read and checked. For a policy without errors, the consequences, the Slurm
/// configuration and the test cases can be evaluated, and Lua loads the generated script.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size); // bytes are characters
    const auto reading = policy::read_policy(text, "fuzz.yaml");
    if (!reading) {
        return 0;
    }
    auto findings = reading->findings;
    const auto checked = policy::check(reading->policy);
    findings.insert(findings.end(), checked.begin(), checked.end());
    if (policy::has_errors(findings)) {
        return 0;
    }
    policy::consequences(reading->policy, {22, 5}, "2026-11-03T17:00");
    policy::slurm_conf_of(reading->policy);
    policy::run_cases(policy::Rules(reading->policy));
    if (!lua::load_submit_script(policy::job_submit_lua(reading->policy))) {
        std::abort();
    }
    return 0;
}
