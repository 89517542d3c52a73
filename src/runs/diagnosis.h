// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/cluster.h"
#include "ports/host.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What is wrong with a place, and what to do about it: judgements on what was seen. Pure.
namespace gpuq {

/// One line of `gpuq doctor`.
struct Finding {
    enum class Level { ok, warning, problem, unknown };
    std::string check; ///< a stable word: `slurm`, `clock`, ...
    Level level = Level::unknown;
    std::string text;
    std::string remedy; ///< what to do; empty when there is nothing to do
    bool operator==(const Finding&) const = default;
};

std::string_view word(Finding::Level level);

/// Findings as one text, and back: for a pipe between processes of one gpuq.
std::string packed(const std::vector<Finding>& findings);
std::vector<Finding> unpacked(std::string_view text);

/// How Slurm answered: the time it took, and this host's clock before and after.
struct Answered {
    std::string cluster;
    std::chrono::milliseconds took{0};
    Time before;
    Time after;
};

/// slurm, version, clock, scheduler, kill-wait, inactive-limit.
std::vector<Finding> judge_controller(const Controller& controller, const Answered& answered);
/// The same checks when there is no answer.
std::vector<Finding> judge_silence(const Error& error);

/// A line for each queue, one about the nodes, one about submission from nodes.
std::vector<Finding> judge_queues(const std::vector<Partition>& queues,
                                  const std::vector<Node>& nodes);

/// `asked`: what came of a question about some job. `failure`: why a cluster of `gpuq cluster up`
/// runs without it.
Finding judge_accounting(bool configured, const Result<PastJob>& asked,
                         const std::optional<std::string>& failure = {});

/// state-folder and space. `uid`: the calling user.
std::vector<Finding> judge_folder(const std::string& path, const Result<FolderFacts>& facts,
                                  std::uint32_t uid);

/// What a step on a node saw.
struct NodeView {
    std::string host;
    bool sees_folder = false;   ///< reads there what this host has just written
    bool writes_folder = false; ///< and this host reads what it wrote
    bool sees_supervisor = false;
    std::optional<bool> may_submit;
    std::optional<Time> clock; ///< to the second, when it began
};
/// The step's words, a line each: `host NAME`, `clock SECONDS`, `folder yes`, ...
NodeView node_view_in(std::string_view lines);
/// nodes-see-folder, nodes-see-supervisor, nodes-submit, node-clock.
std::vector<Finding> judge_node(const NodeView& view, const std::string& folder,
                                const std::string& supervisor, const Answered& answered);

} // namespace gpuq
