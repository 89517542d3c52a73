// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <string>

namespace gpuq::supervisor {

/// Sends the notice on the other nodes of a multi-node job: a helper has Slurm start one step on
/// all of them, and each of its processes (`gpuq-supervisor notice`) notifies the processes on its
/// node. This takes three requests to slurmctld, regardless of the number of nodes.

/// After this the helper is considered hung.
constexpr std::chrono::milliseconds k_notice_patience{25'000};
/// The helper's work. Returns why not all nodes were reached; empty: they were.
std::string notify_elsewhere(Services& services, const Options& options, int nodes, Notice notice);

/// The step's process on one of these nodes: notifies the run's processes on this node and reports
/// their number on stdout. Processes of another node whose slurmd shares this machine are left to
/// that node's process.
int notify_this_node(const Options& options, Notice notice);

} // namespace gpuq::supervisor
