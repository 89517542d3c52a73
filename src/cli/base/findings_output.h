// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/insight/diagnosis.h"

#include <cstddef>
#include <vector>

/// Text and JSON of the findings of `gpuq doctor`. Pure.
namespace gpuq::cli {

/// One row per finding: columns level, check, what (followed by the remedy).
report::Table findings_table(const std::vector<Finding>& findings);

/// For --json: `checks`, `problems`, `warnings`.
report::Json::Members findings_list(const std::vector<Finding>& findings);

std::size_t count_of(const std::vector<Finding>& findings, Finding::Level level);

} // namespace gpuq::cli
