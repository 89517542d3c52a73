// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/progress.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq::telemetry {

/// A progress bar in the output: tqdm's `45%|####  | 45/100 [00:10<00:12, 4.4it/s]`, Keras's
/// `120/469 [=====>....]`.
struct Bar {
    std::string title; ///< the text before it
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::chrono::seconds elapsed{0};
    std::optional<double> rate; ///< per second, as shown by the bar
    bool operator==(const Bar&) const = default;
};

/// Information about a training in one line of output.
struct ParsedLine {
    /// The keywords epoch, step, iteration and iter, each as a separate word, with a number (`Epoch
    /// 3/10`, `step: 120`, `[iter 5 of 80]`): the last one of each unit.
    std::vector<Progress> counters;
    std::optional<Bar> bar;
    /// `loss=0.2`, `loss: 0.2`, `'loss': 0.2`, also `loss 0.2` for a few well-known names; only
    /// from a line that contains progress or a loss.
    std::vector<std::pair<std::string, double>> values;

    bool operator==(const ParsedLine&) const = default;
};

/// `line`: without its end. Linear in its length.
ParsedLine parse_line(std::string_view line);

/// The number that `text` consists of, including NaN and infinities as programs print them.
std::optional<double> number_in(std::string_view text);

} // namespace gpuq::telemetry
