// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/simulation.h"
#include "report/json.h"
#include "report/table.h"
#include "tune/tuning.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::cli {

/// The result of `gpuq policy tune`.
struct TuningReport {
    std::string trace; ///< the workload's name
    LeftOut left_out;
    const tune::Problem* problem = nullptr;
    tune::Tuning tuning;
    std::vector<tune::Demand> demands; ///< all runs last
    std::vector<tune::Impossible> impossible;
    std::size_t chosen = 0; ///< index of the choice to be shown as a diff
};

/// Runs, GPU-hours and their part of the machine, by group. Pure.
report::Table demand_table(const TuningReport& tuned);
/// The waits of each goal, as the policy is and under each choice, with a ! where it is missed.
/// Pure.
report::Table choices_table(const TuningReport& tuned);
/// The weeks and simulations, and the numbers that were varied, a line each. Pure.
std::string effort_text(const TuningReport& tuned);
/// The targets that no policy can hold, and why. Pure.
std::string impossible_text(const TuningReport& tuned);
/// The changes of the choices that are not shown as a diff, a line each. Pure.
std::string other_choices_text(const TuningReport& tuned);
/// The chosen changes as a unified diff. Pure.
std::string diff_text(const TuningReport& tuned);
/// Whether a choice is recommended, and why not. Pure.
std::string verdict_text(const TuningReport& tuned);
/// Whether the recommended policy, or the one in the file, holds every goal in the unseen weeks.
bool holds_unseen(const TuningReport& tuned);

/// `calibration p95 2 min 54 s, long mean 5 h`. Pure.
std::string waits_text(const std::vector<tune::Goal>& goals,
                       const std::vector<tune::Seconds>& waits);

report::Json::Members tuning_document(const TuningReport& tuned);

} // namespace gpuq::cli
