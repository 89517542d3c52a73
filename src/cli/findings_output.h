// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/diagnosis.h"

#include <cstddef>
#include <vector>

/// What `gpuq doctor` found, as people and scripts are shown it. Pure.
namespace gpuq::cli {

/// A line for each finding: columns level, check, what (with the remedy after it).
report::Table findings_table(const std::vector<Finding>& findings);

/// The same for --json: `checks`, `problems`, `warnings`.
report::Json::Members findings_list(const std::vector<Finding>& findings);

std::size_t count_of(const std::vector<Finding>& findings, Finding::Level level);

} // namespace gpuq::cli
