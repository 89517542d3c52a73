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

/// A bar that a program draws: tqdm's `45%|####  | 45/100 [00:10<00:12, 4.4it/s]`, Keras's
/// `120/469 [=====>....]`.
struct Bar {
    std::string title; ///< what stands before it
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::chrono::seconds elapsed{0};
    std::optional<double> rate; ///< per second, as the bar says it
    bool operator==(const Bar&) const = default;
};

/// What one line of output tells of a training.
struct Told {
    /// By the words epoch, step, iteration and iter, each as a word of its own, and a number
    /// (`Epoch 3/10`, `step: 120`, `[iter 5 of 80]`): the last of each unit.
    std::vector<Progress> words;
    std::optional<Bar> bar;
    /// `loss=0.2`, `loss: 0.2`, `'loss': 0.2`, also `loss 0.2` of a few well-known words; of a line
    /// that tells how far the program is, or a loss.
    std::vector<std::pair<std::string, double>> values;

    bool operator==(const Told&) const = default;
};

/// `line`: without its end. Linear in its length.
Told told_by(std::string_view line);

/// The number that `text` is, also NaN and infinite ones as programs print them.
std::optional<double> number_in(std::string_view text);

} // namespace gpuq::telemetry
