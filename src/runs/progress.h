// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How far a training has come, as its output tells it.
namespace gpuq {

struct Progress {
    std::string unit; ///< `epoch`, `step` or `iteration`
    std::uint64_t done = 0;
    std::optional<std::uint64_t> total;
    bool operator==(const Progress&) const = default;
};

/// The first, or the last, place in `output` that tells a progress: one of the words epoch, step,
/// iteration or iter, as a word of its own, and a number (`Epoch 3/10`, `step: 120`,
/// `[iter 5 of 80]`). Of the units that occur, epochs count before steps and these before
/// iterations, so that the places of two links of one program can be compared.
std::optional<Progress> first_progress(std::string_view output);
std::optional<Progress> last_progress(std::string_view output);

/// Where a link began, and has come to: out of the beginning and the end of its log on disk.
struct LinkProgress {
    std::optional<Progress> first, last;
};
LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link);

/// How long the rest takes at the pace of what was done `between` the two places, of one unit.
/// Nothing without a total, or while nothing was done in between.
std::optional<std::chrono::seconds> time_left(const Progress& first, const Progress& last,
                                              std::chrono::seconds between);

} // namespace gpuq
