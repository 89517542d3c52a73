// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "sweeps/metric.h"
#include "telemetry/series.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// `--stop-early`: the tries that are ended before they finish, because their curves are worse than
/// those of other tries at the same step. Pure.
///
/// Curves are compared only at certain steps, the rungs, which are the same for all tries of a
/// sweep. At each rung a try has one value, so that any number of tries can be compared from a few
/// numbers each.
namespace gpuq::sweeps {

struct StopRule {
    enum class Kind {
        /// A try ends if the best value that it had at a rung is worse than the median of the other
        /// tries' means since the rung before, also of those that pass this rung later: the first
        /// tries of a sweep are compared as often as the others. Four rungs for each doubling of
        /// the step.
        median,
        /// Asynchronous successive halving: a try continues only while it is among the best 1/eta
        /// of all that have reached the rung until now. Rungs at min, min*eta, min*eta^2, ...
        asha,
    } kind = Kind::median;
    std::int64_t min = 10; ///< the first rung
    int eta = 3;           ///< of asha
    int tries = 4;         ///< of median: no try ends before this many others have reached the rung
    bool operator==(const StopRule&) const = default;
};
/// `median`, `asha:eta=4,min=100`. `usage`, with the position of the mistake.
Result<StopRule> parse_stop_rule(std::string_view text);
/// With all its numbers: `asha:eta=3,min=10`.
std::string to_text(const StopRule& rule);

/// Whether a running try is compared at all its rungs again when other tries have passed them.
bool compares_again(const StopRule& rule);

/// The first rung beyond a step; nothing: beyond all of them.
std::optional<std::int64_t> rung_after(const StopRule& rule, std::int64_t step);

/// The curve of a try up to a rung. A curve whose values are NaN or infinite when it passes the
/// rung has the worst of all values, which is infinite.
struct RungValue {
    std::int64_t rung = 0; ///< a step
    double best = 0;       ///< the best value
    double mean = 0;       ///< of all values
    std::uint64_t points = 0;
    bool operator==(const RungValue&) const = default;
};

/// Finds the rungs that the curve of a running attempt passes.
class Climb {
public:
    /// `earlier`: the last rung of the attempts that this one may continue.
    Climb(const StopRule& rule, Metric metric, std::optional<RungValue> earlier)
        : m_rule(rule)
        , m_metric(std::move(metric))
        , m_earlier(earlier)
    {
    }

    /// The rungs that the curve has passed since the last call, in ascending order. The curve is
    /// complete as far as it goes. Rungs before its first value have no value. A curve that begins
    /// at or before the earlier attempts' last rung does not continue them.
    std::vector<RungValue> passed(const telemetry::Series& curve);

private:
    RungValue value_at(std::int64_t rung, const telemetry::Series& curve) const;

    StopRule m_rule;
    Metric m_metric;
    std::optional<RungValue> m_earlier;
    std::int64_t m_reached = std::numeric_limits<std::int64_t>::min();
    bool m_has_begun = false;
};

/// Why a try was ended.
struct EarlyStop {
    int rung = 1;          ///< its number
    std::int64_t step = 0; ///< of the rung
    double value = 0;      ///< of the try, which is worse than the threshold
    double threshold = 0;
    std::size_t compared = 0; ///< the number of other tries
    bool operator==(const EarlyStop&) const = default;
};

/// The value at a rung with the mean of the part since the try's rung `before`: unlike that of all
/// its values, it is not dominated by the poor ones of the beginning. Unchanged if nothing is known
/// about that part.
RungValue since(const RungValue& before, RungValue value);

/// Whether a try that has passed a rung ends at it. `others`: the values of all other tries that
/// have passed the same rung, their means since the rung before. Nothing: it continues.
std::optional<EarlyStop> evaluate(const StopRule& rule, const Metric& metric, const RungValue& own,
                                  const std::vector<RungValue>& others);

} // namespace gpuq::sweeps
