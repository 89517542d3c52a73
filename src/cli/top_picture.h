// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "runs/overview.h"
#include "runs/progress.h"
#include "runs/status.h"
#include "tui/picture.h"

#include <string>
#include <vector>

/// What `gpuq top` shows, out of what was found. Pure.
namespace gpuq::cli {

struct TopFound {
    Overview overview;
    std::vector<RunStatus> runs; ///< completed by the overview
    std::string trouble;         ///< besides the overview's own
};

tui::Picture top_picture(const TopFound& found, Time now);

/// How far a run's output says it is, a line or none.
std::vector<std::string> progress_facts(const RunStatus& status, const LinkProgress& progress,
                                        Time now);

/// For --json.
report::Json::Members top_document(const TopFound& found, Time now);

} // namespace gpuq::cli
