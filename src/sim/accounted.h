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

/// Measures how long users actually waited, and whether the policy's targets were met. Pure.
namespace gpuq::sim {

/// The wait of one job with GPUs for its start, from the time when it could have started.
struct AccountedWait {
    std::string partition;
    std::string model; ///< empty: not accounted for
    Seconds wait{0};
    bool started = true; ///< false: it is pending, and `wait` is its wait so far
    std::string user{};  ///< empty: the text does not name it

    bool operator==(const AccountedWait&) const = default;
};

struct AccountedWaits {
    std::vector<AccountedWait> waits;
    std::size_t withdrawn = 0; ///< left the queue before they started; not counted as waits

    bool operator==(const AccountedWaits&) const = default;
};

/// Parses the output of `sacct -P` in UTC, with its header line, at `now`. Jobs that may not start
/// yet (held, or with a dependency) do not count as waiting; jobs submitted before `since` do not
/// count at all. `usage` as NAME:LINE: TEXT.
Result<AccountedWaits> parse_waits(std::string_view text, const std::string& name, Time now,
                                   Time since = {});

/// Statistics of waits. A percentile is unknown if there are too few jobs: at least one job must be
/// above it, which takes 20 jobs for the 95th. Pending jobs count with their wait so far, which
/// makes each value a lower bound.
struct WaitFigures {
    std::size_t jobs = 0;    ///< including pending jobs
    std::size_t waiting = 0; ///< pending jobs
    std::optional<Seconds> p50, p95, max;

    bool operator==(const WaitFigures&) const = default;
};

/// One target of a queue, and whether it is met.
struct KeptTarget {
    int percent = 100; ///< 50, 95, or 100 (all)
    Seconds target{0};
    std::optional<Seconds> wait; ///< nullopt: too few jobs
    int line = 0;                ///< in the policy file

    std::optional<bool> met() const { return wait ? std::optional(*wait <= target) : std::nullopt; }
    bool operator==(const KeptTarget&) const = default;
};

struct QueueWaits {
    std::string queue;
    WaitFigures all;
    std::vector<std::pair<std::string, WaitFigures>> models; ///< by name
    std::vector<KeptTarget> targets;                         ///< for all its jobs together
    std::size_t users = 0;                                   ///< of the jobs, if they are named

    bool operator==(const QueueWaits&) const = default;
};

/// The waits in each queue of the policy, in its order. A job counts for the queue of its
/// partition; a pending job with several partitions for that of the first one.
std::vector<QueueWaits> waits_by_queue(const policy::Rules& rules,
                                       const std::vector<AccountedWait>& waits);

/// The same where no policy has queues: by partition, in the order of their names.
std::vector<QueueWaits> waits_by_partition(const std::vector<AccountedWait>& waits);

} // namespace gpuq::sim
