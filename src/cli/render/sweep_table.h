// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/code_text.h"
#include "report/json.h"
#include "report/table.h"
#include "runs/status.h"
#include "sweeps/board.h"
#include "sweeps/records.h"
#include "sweeps/totals.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Text and JSON of sweeps. Pure.
namespace gpuq::cli {

/// A sweep at one time.
struct SweepStatus {
    sweeps::Sweep sweep;
    std::vector<sweeps::Try> tries; ///< those of lost workers are waiting
    sweeps::Tally tally;
    std::vector<RunStatus> workers; ///< that have not ended
    enum class State {
        waiting, ///< for the first worker's GPUs
        running, ///
        stalled, ///< tries are left, but no worker
        stopped, ///< by the user, with tries left
        spent,   ///< its GPU time, with tries left
        ended,
    } state = State::waiting;
    bool is_open = false;         ///< further tries may be proposed
    std::string proposal_failure; ///< why not, if the program failed; not sanitised
    std::string slurm_silent;     ///< why Slurm did not respond to the query; else empty
};
/// The name of a state in JSON and on the screen.
std::string_view word(SweepStatus::State state);

/// A sweep in a list.
struct SweepLine {
    sweeps::Sweep sweep;
    SweepStatus::State state = SweepStatus::State::ended;
    sweeps::Totals totals;
    std::size_t workers = 0; ///< that have not ended
};
SweepLine line_of(const SweepStatus& status, Time now);

/// A line per sweep: sweep, state, tries, done, failed, left, workers, best.
report::Table sweeps_table(const std::vector<SweepLine>& sweeps);

/// The tries, those with the best values first, then running, waiting and other ended ones; `most`
/// lines. Columns: try, state, one for each parameter, best, last, step, time, exit.
report::Table tries_table(const SweepStatus& status, std::size_t most, Time now);

/// These tries, by their numbers, without the parameters that are the same in all of them.
report::Table compared_tries_table(const SweepStatus& status,
                                   const std::vector<std::size_t>& numbers, Time now);

/// `done`, `failed`, `to continue`, with its tone.
report::Cell state_cell(const sweeps::Try& entry);

/// `6 of 24 tries done, 1 failed, 2 running, 15 left; best loss 0.031 (try 4: lr=3e-4)`.
std::string sweep_summary(const SweepStatus& status);

/// Why a try was stopped early: `loss 0.8 at step 27 (rung 2 of asha:eta=3,min=9): limit 0.5,
/// 7 others`.
std::string evidence_text(const sweeps::EarlyStop& evidence, const sweeps::Sweep& sweep);

/// Adds the list `sweeps` to a document, without tries.
void add_sweeps(report::Json::Members& document, const std::vector<SweepLine>& sweeps);

/// The document of `gpuq show` for a sweep, or for one of its tries.
report::Json::Members sweep_document(const SweepStatus& status, std::optional<std::size_t> number,
                                     const std::optional<CodeFacts>& code, Time now);

/// A line if no try that has ended has printed the metric given; else empty.
std::string missing_metric_text(const SweepStatus& status);

/// The settings and results as CSV, a line per try.
std::string sweep_csv(const SweepStatus& status);

} // namespace gpuq::cli
