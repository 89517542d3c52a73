// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/daemons.h"

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

/// Starts the daemons that do not run yet, each as soon as those it needs are ready, and waits for
/// every node to report. `io` with the last words of a daemon that died; `stopped` by a held
/// signal. Without an accounting that can start it goes on, unless there is a policy to enforce,
/// and says why in State::accounting_failure; once that starts, the controller is started anew
/// with it.
Result<void> start_daemons(Start& start);

/// Everything from a folder that holds no running daemon: ports, sockets' folder, configuration,
/// daemons. An error leaves no process and no socket.
Result<void> start_or_take_back(Start& start);

} // namespace gpuq::embedded
