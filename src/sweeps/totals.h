// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "sweeps/board.h"
#include "sweeps/records.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::sweeps {

/// The tries of a sweep in a few numbers: a line of `gpuq ls`.
struct Totals {
    struct Best {
        std::size_t number = 0; ///< of the try
        double value = 0;
        bool operator==(const Best&) const = default;
    };
    std::size_t tries = 0;
    Tally tally;
    std::chrono::microseconds gpu_time{};
    std::optional<Best> best;
    bool is_open = false; ///< further tries may be proposed
    std::string failure;  ///< of the proposals; not sanitised
    bool operator==(const Totals&) const = default;
};
/// Without the facts about proposals. Pure.
Totals totals_of(const std::vector<Try>& tries, const Sweep& sweep, Time now);

/// sweeps/KEY/totals.json, written when a sweep is found to be over. It counts until the sweep is
/// active again (layout::active_sweep): its cost does not depend on the number of tries.
std::string to_json(const Totals& totals);
Result<Totals> totals_from_json(std::string_view text);

} // namespace gpuq::sweeps
