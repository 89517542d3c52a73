// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "policy/decide.h"
#include "sim/machine.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// How long people really waited, and whether that is what the policy promises. Pure.
namespace gpuq::sim {

/// How long one job with GPUs waited for its start, from when it could have started.
struct AccountedWait {
    std::string partition;
    std::string model; ///< empty: not accounted for
    Seconds wait{0};
    bool started = true; ///< false: it waits still, and `wait` is what it has waited so far

    bool operator==(const AccountedWait&) const = default;
};

struct AccountedWaits {
    std::vector<AccountedWait> waits;
    std::size_t withdrawn = 0; ///< left the queue before they started; in no wait

    bool operator==(const AccountedWaits&) const = default;
};

/// Reads what `sacct -P` prints in UTC, with its header line, at `now`. Jobs that may not start yet
/// (held, or behind a dependency) do not wait. `usage` as NAME:LINE: what.
Result<AccountedWaits> parse_waits(std::string_view text, const std::string& name, Time now);

/// Figures of waits. One of which there are too few jobs is not known: so many percent of them are
/// to leave one at least beyond, which for 95 takes 20. Jobs that still wait count with what they
/// have waited so far, so each figure is a lower bound then.
struct WaitFigures {
    std::size_t jobs = 0;    ///< with those that wait
    std::size_t waiting = 0; ///< still
    std::optional<Seconds> p50, p95, max;

    bool operator==(const WaitFigures&) const = default;
};

/// One target of a queue, and whether it is kept.
struct KeptTarget {
    int percent = 100; ///< 50, 95, or all
    Seconds target{0};
    std::optional<Seconds> wait; ///< nothing: too few jobs
    int line = 0;                ///< of the policy

    std::optional<bool> met() const { return wait ? std::optional(*wait <= target) : std::nullopt; }
    bool operator==(const KeptTarget&) const = default;
};

struct QueueWaits {
    std::string queue;
    WaitFigures all;
    std::vector<std::pair<std::string, WaitFigures>> models; ///< by name
    std::vector<KeptTarget> targets;                         ///< of all its jobs together

    bool operator==(const QueueWaits&) const = default;
};

/// Of each queue of the policy, in its order; a job counts in the queue whose partition it is in,
/// or of those that it waits for the first.
std::vector<QueueWaits> waits_by_queue(const policy::Rules& rules,
                                       const std::vector<AccountedWait>& waits);

} // namespace gpuq::sim
