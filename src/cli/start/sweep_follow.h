// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/notices.h"
#include "cli/base/verb.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/sweep_table.h"
#include "report/json.h"
#include "sweeps/board.h"
#include "sweeps/records.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace gpuq::cli {

enum class SweepFollowing {
    owner,   ///< withdraws workers that still wait at the end; a second Ctrl-C stops the sweep
    observer ///< changes nothing
};

/// Prints a line about each try that ends, then the best ones. Ends that are in `before` are not
/// news; nor, for an observer, are those before the call. Returns once the sweep has ended, is
/// stopped or has no workers left, with 0 only if all tries have succeeded; or when a signal ends
/// following, as Ctrl-C does.
Result<int> follow_sweep(Invocation& invocation, Store& store, sweeps::Sweep sweep,
                         SweepFollowing following, const std::vector<sweeps::Try>& before = {});

/// The exit status for a try that no worker will take: 119, or 123 if the sweep is stopped or has
/// used its GPU time. Nothing: it runs, waits or has ended.
std::optional<int> outcome_without_worker(const SweepStatus& status, std::size_t number);

/// Waits for a sweep, or for one of its tries, beside others. Changes nothing.
class SweepWait {
public:
    /// `invocation` and `store` must outlive the object.
    SweepWait(Invocation& invocation, Store& store, SweepTarget target);

    /// Nothing until it has ended; then the exit status: that of the try, or of a try that no
    /// worker will take. Reads the files, and the state of the workers when necessary or after 20
    /// s. Prints how it has ended, once.
    Result<std::optional<int>> check();
    /// As last read by check().
    report::Json::Members document() const;

private:
    bool may_be_over() const;
    std::optional<int> exit_of_target() const;
    void report();

    Invocation& m_invocation;
    Store& m_store;
    SweepTarget m_target;
    sweeps::Board m_board;
    SweepStatus m_status;
    std::chrono::steady_clock::time_point m_query_at;
    std::optional<int> m_exit;
    bool m_was_active = false;
    Notices m_notices;
};

/// Waits until a try has ended; prints it as JSON if requested. Returns the exit status.
Result<int> wait_for_try(Invocation& invocation, Store& store, SweepTarget target);

} // namespace gpuq::cli
