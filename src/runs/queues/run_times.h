// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "runs/queues/calibration.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

/// Which part of their time limits jobs use, as observed. Pure.
namespace gpuq {

/// For each kind of job, a life table over the used part of the time limit: for each interval of
/// it, how many jobs ended in it, and how much of it jobs ran through. Running jobs count up to
/// now, so that jobs with long run times, of which more are running at any time, do not bias it.
struct RunTimes {
    /// The upper bounds of the intervals, as parts of the time limit.
    static constexpr std::array<double, 14> k_bounds{0.003, 0.01, 0.03, 0.06, 0.1,  0.2,  0.35,
                                                     0.5,   0.65, 0.8,  0.9,  0.97, 0.99, 1.0};
    struct Interval {
        double ended = 0;
        double exposure = 0; ///< in time limits
        bool operator==(const Interval&) const = default;
    };
    using Table = std::array<Interval, k_bounds.size()>;

    /// Kinds of jobs: short or long limits (up to 10 min, 30 min, 1 h, 2 h, 4 h, 12 h, 24 h,
    /// longer), by few or many GPUs (at most 1, 3, more).
    static constexpr std::size_t k_limits = 8;
    static constexpr std::size_t k_sizes = 3;
    using Kind = std::size_t;
    static Kind kind_of(std::chrono::duration<double> limit, int gpus);

    /// Jobs of the last day: how many ended before their limits, and how many would have if those
    /// jobs had been like the ones seen before.
    struct Recent {
        double ended = 0;
        double expected = 0;
        bool operator==(const Recent&) const = default;
    };

    std::array<Table, k_limits * k_sizes> tables{};  ///< by kind
    std::array<Recent, k_limits * k_sizes> recent{}; ///< likewise
    std::optional<Time> until; ///< the end of the observation; unset: nothing observed
    /// How long Slurm keeps ended jobs at least, as far as that was seen.
    std::chrono::seconds kept{0};
    Calibration calibration; ///< of the forecasts made from them

    /// The number of jobs that ended before their limits.
    double ended() const;
    bool operator==(const RunTimes&) const = default;
};

/// Adds the observations since `until`, but at most those of the last five minutes, for which Slurm
/// keeps ended jobs by default (MinJobAge). Old observations lose half of their weight in two
/// weeks, in `recent` in a day. Also compares starts with their forecasts.
void observe(RunTimes& times, const std::vector<Job>& jobs, Time now);

/// One possible truth behind an observation. It differs more from others if less was observed. A
/// kind of jobs of which few were seen to end is similar to those with the same limits, those with
/// the same limits to all others, and all of them to a general pattern: a quarter of the jobs ends
/// within 3 % of its limit, a half within 20 %, and an eighth reaches it. Jobs of a kind that ended
/// earlier or later than expected within the last day continue to do so. Since jobs that wait or
/// run now are not those observed, the truth varies further.
class UseOfLimits {
public:
    UseOfLimits(const RunTimes& times, std::mt19937_64& random);

    /// Draws the part of its time limit that a job uses which has used `elapsed` of it. At most 1.
    double draw(RunTimes::Kind kind, double elapsed, std::mt19937_64& random) const;

private:
    struct Truth {
        std::array<double, RunTimes::k_bounds.size()> rates{};    ///< per time limit
        std::array<double, RunTimes::k_bounds.size() + 1> sums{}; ///< at each bound, from 0
    };
    std::array<Truth, RunTimes::k_limits * RunTimes::k_sizes> m_kinds{};
};

} // namespace gpuq
