// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/accounting.h"
#include "ports/host.h"
#include "ports/nodes.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The checks of `gpuq doctor`: problems of a site, judged from collected facts, and their
/// remedies. Pure.
namespace gpuq {

/// One line of `gpuq doctor`.
struct Finding {
    enum class Level { ok, warning, problem, unknown };
    std::string check; ///< a stable keyword: `slurm`, `clock`, ...
    Level level = Level::unknown;
    std::string text;
    std::string remedy; ///< how to fix it; empty if nothing needs fixing
    bool operator==(const Finding&) const = default;
};
constexpr Finding::Level last_of(Finding::Level)
{
    return Finding::Level::unknown;
}

std::string_view word(Finding::Level level);

/// How Slurm responded: the time it took, and this host's clock before and after.
struct Answered {
    std::string cluster;
    std::chrono::milliseconds took{0};
    Time before;
    Time after;
};

/// slurm, version, clock, defer, batch-sched-delay, max-rpc-cnt if set, kill-wait, inactive-limit,
/// memory-limit, private-data.
std::vector<Finding> assess_controller(const Controller& controller, const Answered& answered);
/// The same checks if Slurm did not respond.
std::vector<Finding> assess_silence(const Error& error);

/// One line for each queue, one about the nodes, one about submission from nodes.
std::vector<Finding> assess_queues(const std::vector<Partition>& queues,
                                   const std::vector<Node>& nodes);

/// `asked`: the result of a query for some job. `failure`: why a cluster of `gpuq cluster up` runs
/// without accounting.
Finding assess_accounting(bool configured, const Result<PastJob>& asked,
                          const std::optional<std::string>& failure = {});

/// state-folder, space and nodes-see-folder. `uid`: the calling user.
std::vector<Finding> assess_directory(const std::string& path, const Result<DirectoryFacts>& facts,
                                      std::uint32_t uid);

/// The observations of a step on a node.
struct NodeView {
    std::string host;
    bool sees_directory = false;   ///< reads a file that this host has just written
    bool writes_directory = false; ///< and this host reads the file that the node wrote
    bool sees_supervisor = false;
    std::optional<bool> may_submit;
    std::optional<Time> clock; ///< in whole seconds, when the step began
};
/// Parses the step's output, one line each: `host NAME`, `clock SECONDS`, `directory yes`, ...
NodeView node_view_in(std::string_view lines);
/// nodes-see-folder, nodes-see-supervisor, nodes-submit, node-clock.
std::vector<Finding> assess_node(const NodeView& view, const std::string& directory,
                                 const std::string& supervisor, const Answered& answered);

} // namespace gpuq
