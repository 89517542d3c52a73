// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "sim/trace.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::tune {

using sim::Seconds;

inline constexpr Seconds k_week = std::chrono::hours{24 * 7};

/// Some successive weeks of a trace, with the jobs to be simulated for them.
struct Period {
    int first = 1; ///< week, from 1
    int last = 1;
    sim::Trace trace;                 ///< with the jobs of one week before, which fill the machine
    std::vector<std::size_t> indexes; ///< of its jobs in the whole trace

    Seconds begin() const { return k_week * (first - 1); }
    Seconds end() const { return k_week * last; }
    bool contains(Seconds submit) const { return submit >= begin() && submit < end(); }
    /// `week 3`, `weeks 1 to 9`.
    std::string text() const;
};

/// A trace in two parts: the last third of its weeks, at least one, is not used by the search.
struct Weeks {
    Period searched;
    Period unseen;
};

/// `usage` for a trace within one week.
Result<Weeks> weeks_of(const sim::Trace& trace, const std::string& name);

} // namespace gpuq::tune
