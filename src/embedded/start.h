// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/state.h"

#include <csignal>

namespace gpuq::embedded {

/// Holds INT, TERM and HUP back while a start is on its way: a start that is broken off is
/// taken back, and the signal acts afterwards.
class HeldSignals {
public:
    HeldSignals();
    ~HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

private:
    sigset_t m_former{};
};

/// What stands for the partitions of a policy until they are made: no client takes an
/// empty file, and no controller one without a partition.
constexpr const char* k_no_policy_yet = "# not made yet\nPartitionName=none Nodes=ALL State=DOWN\n";

/// A start on its way.
struct Start {
    Places places;
    State state; ///< `daemons` are those that run already
};

/// Starts the daemons that do not run yet, each as soon as those it needs are ready, and waits for
/// every node to report. `io` with the last words of a daemon that died; `stopped` by a held
/// signal.
Result<void> start_daemons(Start& start);

/// Everything from a folder that holds no running daemon: ports, sockets' folder, configuration,
/// daemons. An error leaves no process and no socket.
Result<void> start_or_take_back(Start& start);

/// Gives everybody on this machine (root's cluster) or the caller an account. Slurm 22.05 books
/// the jobs of people without one on root.
Result<void> add_people(const Start& start);

} // namespace gpuq::embedded
