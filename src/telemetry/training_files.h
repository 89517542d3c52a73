// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/series.h"

#include <cstdint>
#include <optional>
#include <string_view>

/// Files that training libraries write next to their checkpoints.
namespace gpuq::telemetry {

/// Adds the values of a metrics.csv of Lightning's CSVLogger: a row has `step`, `epoch`, and values
/// in some of the other columns. A last row without an end is still being written and ignored.
/// False without such a header.
bool read_metrics_csv(std::string_view text, Curves& curves);

/// The content of a trainer_state.json of Hugging Face's Trainer: the training so far.
struct TrainerState {
    std::optional<std::uint64_t> global_step;
    std::optional<std::uint64_t> max_steps;
    Curves curves; ///< log_history
};
/// Nothing if the text is not a JSON object.
std::optional<TrainerState> read_trainer_state(std::string_view text);

} // namespace gpuq::telemetry
