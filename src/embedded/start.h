// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/daemons.h"

#include <csignal>

namespace gpuq::embedded {

/// Blocks INT, TERM and HUP during a start: an interrupted start is undone before the signal takes
/// effect.
class HeldSignals {
public:
    HeldSignals();
    ~HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

private:
    sigset_t m_former{};
};

/// Placeholder for the partitions of a policy until they are generated: Slurm's commands reject an
/// empty file, and the controller requires a partition.
constexpr const char* k_no_policy_yet = "# not made yet\nPartitionName=none Nodes=ALL State=DOWN\n";

/// Starts the daemons that are not running, each as soon as those it depends on are ready, and
/// waits until all nodes have registered. `io` with the last log lines of a daemon that died;
/// `stopped` by a held signal. If accounting cannot be started, continues without it except under a
/// policy, and records the reason in State::accounting_failure. When it can be started later, the
/// controller is restarted with it.
Result<void> start_daemons(Start& start);

/// A complete start when no daemon is running: ports, directory for sockets, configuration,
/// daemons. On failure, no process and no socket is left.
Result<void> start_or_take_back(Start& start);

} // namespace gpuq::embedded
