// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/insight/comparison.h"

#include <string>
#include <vector>

/// Text and JSON of a comparison of runs. Pure; not sanitised.
namespace gpuq::cli {

/// The result of `gpuq show --compare`.
struct WholeComparison {
    Comparison comparison;
    std::vector<std::string> warnings; ///< data that could not be obtained, and why
};

/// A row for each run: id, name, state, exit status, time, GPU-hours.
report::Table compared_runs_table(const Comparison& comparison, Time now);

/// The settings that differ. Up to four runs have a column each; more runs have a row each, in
/// several tables if there are many settings. None if nothing differs.
std::vector<report::Table> settings_tables(const Comparison& comparison);

/// For --json: the list of the settings that differ.
report::Json settings_json(const Comparison& comparison);

/// The best and the last value of each metric, with its step, in the same form.
std::vector<report::Table> metrics_tables(const Comparison& comparison);

/// `best loss: 0.25 at step 90 in run 8 (train)`; empty if no run is the best.
std::string best_text(const Comparison& comparison, const ComparedMetric& metric);

/// Lines about missing and doubtful data.
std::vector<std::string> comparison_notes(const Comparison& comparison);

/// For --json.
report::Json::Members comparison_document(const WholeComparison& whole, Time now);

} // namespace gpuq::cli
