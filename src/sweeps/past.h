// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "sweeps/records.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::sweeps {

/// The tries of a sweep that had ended at one time, in a few numbers, and all that its files
/// contained then about the other ones: `gpuq ls` reads only what they have got since.
struct Past {
    struct Attempt {
        RunKey worker;
        TryEvent event;
        bool operator==(const Attempt&) const = default;
    };
    /// For each try how it ended: `+` succeeded, `-` failed, `x` stopped, `e` stopped early; `.`:
    /// it has not.
    std::string ends;
    std::chrono::microseconds used{}; ///< of those that had ended
    std::optional<TryEvent> best;     ///< the end of the best one
    std::vector<Attempt> open;        ///< events of the other ones
    std::vector<Retry> retried;       ///< likewise
    int batches = 0, retries = 0;     ///< files of the sweep that were read
    /// By worker: how much of its journal was read.
    std::map<RunKey, std::uint64_t> journals;

    std::size_t ended() const;
    bool operator==(const Past&) const = default;
};

/// sweeps/KEY/past.json, written by clients: only a cache.
std::string past_json(const RunKey& sweep);
std::string to_json(const Past& past);
Result<Past> past_from_json(std::string_view text);

/// The character of an end in Past::ends, and an end that has it.
char mark_of(const TryEvent& end);
TryEvent end_with(char mark, std::size_t number);

} // namespace gpuq::sweeps
