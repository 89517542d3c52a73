// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "runs/status.h"
#include "runs/what_helps.h"

#include <optional>
#include <string>
#include <vector>

/// A wait as people and scripts are shown it. Pure.
namespace gpuq::cli {

/// All that `gpuq why` found out.
struct Why {
    RunStatus run;
    std::optional<int> ahead; ///< of a waiting run: the jobs of its queue that go first
    std::vector<Advice> advice;
    std::vector<std::string> policy;   ///< what the policy in force says to such a run, by lines
    std::vector<std::string> warnings; ///< what could not be asked, and why
};

/// Lines for a person, not sanitised. For a run that does not wait: what it does instead, and the
/// command that fits.
std::vector<std::string> why_lines(const Why& why, Time now);

/// For --json.
report::Json::Members why_document(const Why& why, Time now);

} // namespace gpuq::cli
