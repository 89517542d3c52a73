// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/series.h"

#include <cstdint>
#include <optional>
#include <string_view>

/// Files that training libraries write beside their checkpoints.
namespace gpuq::telemetry {

/// Adds what a metrics.csv of Lightning's CSVLogger tells: a row has `step`, `epoch`, and a value
/// in some of the other columns. A last row without an end is one that is being written. False
/// without such a header.
bool read_metrics_csv(std::string_view text, Curves& curves);

/// What a trainer_state.json of Hugging Face's Trainer tells: all of the training so far.
struct TrainerState {
    std::optional<std::uint64_t> global_step;
    std::optional<std::uint64_t> max_steps;
    Curves curves; ///< log_history
};
/// Nothing for a text that is no JSON object.
std::optional<TrainerState> read_trainer_state(std::string_view text);

} // namespace gpuq::telemetry
