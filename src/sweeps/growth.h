// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"
#include "runs/records/heartbeat.h"
#include "sweeps/board.h"
#include "sweeps/records.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

/// A sweep whose number of workers was not given gets another one whenever tries wait and no worker
/// does. The new worker waits in Slurm's queue until GPUs are free and the policy allows it, so
/// that nothing has to query either. While other jobs wait for the GPUs, it shrinks instead
/// (runs/giving_way.h): its newest worker ends after its tries.
namespace gpuq::sweeps {

/// Whether the waiting tries would occupy the workers that run tries now for longer than the start
/// of another worker is worth, or no worker runs tries, and the sweep's GPU time lasts as long.
/// Pure.
bool is_worker_worthwhile(const std::vector<Try>& tries, const Sweep& sweep, Time now);

/// Where another worker belongs.
struct Vacancy {
    RunKey behind;  ///< the newest worker
    int number = 1; ///< of the new one
    bool operator==(const Vacancy&) const = default;
};

/// Finds vacancies of a sweep: for its workers, each of which may add the next one.
///
/// A worker is added behind the newest one, once that has begun a try: workers that fail at their
/// start don't bring others. Only one process can create the file layout::sweep_added of the newest
/// worker; it contains the key of the one to add. If that process dies before the new worker is
/// registered, the next one is added behind the missing one.
class Growth {
public:
    /// `store` must outlive the object.
    Growth(Store& store, RunKey sweep)
        : m_store(store)
        , m_sweep(std::move(sweep))
    {
    }

    /// False if the number of workers was given.
    bool is_allowed();
    /// Nothing: no worker is to be added now. `board`: read just before.
    Result<std::optional<Vacancy>> vacancy(const Sweep& sweep, const Board& board, Time now);
    /// Whether a running worker is the newest one of several that certainly run: the one that ends
    /// first.
    bool is_newest_of_several(const RunKey& self, Time now);

    enum class Older {
        unknown, ///< query again in a second
        continues,
        gone, ///< all of them
    };
    /// Whether an older worker continues the sweep, for one that runs no more tries and is about to
    /// give way. It continues if it has given two signs of life since the first of these calls:
    /// before a single one, its program may have died. So a worker that gives way leaves another
    /// one that lives longer; the oldest never gives way. `unknown` for half a minute at most.
    Older older_than(const RunKey& self, Time now);

private:
    struct Signs {
        Heartbeat last;
        Time since;    ///< of the first one
        int count = 0; ///< of those after it
    };
    Result<std::vector<RunKey>> workers() const;
    bool waits(const RunKey& worker, Time now);
    std::optional<Heartbeat> sign_of_life(const RunKey& worker, Time now);
    Result<RunKey> newest(const std::vector<RunKey>& workers);
    bool is_followed_by_another(const std::vector<RunKey>& workers, const RunKey& newest, Time now);

    Store& m_store;
    RunKey m_sweep;
    std::map<RunKey, LinkNumber> m_next; ///< by worker: its first link that has not started
    std::map<RunKey, Signs> m_signs;     ///< of older workers
};

/// Registers a worker and calls `submit`, unless another process fills the vacancy, or the sweep is
/// not to grow any more: `busy`. After an error of `submit`, the vacancy is open again, except if
/// the worker may have been submitted
/// (`unreachable`).
Result<void> fill(Store& store, const RunKey& sweep, const Vacancy& vacancy, const RunKey& worker,
                  const std::function<Result<void>()>& submit);

} // namespace gpuq::sweeps
