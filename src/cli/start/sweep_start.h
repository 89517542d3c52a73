// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/start/run_options.h"
#include "runs/status.h"
#include "sweeps/board.h"
#include "sweeps/parameters.h"
#include "sweeps/records.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// The start of a sweep and of its workers.
namespace gpuq::cli {

/// The tries that `--over`, `--random`, `--seed`, `--from` and `--propose` describe.
struct GivenTries {
    std::vector<std::string> names;
    std::vector<sweeps::Values> tries;
    std::optional<std::uint64_t> seed;
    std::optional<sweeps::Proposals> propose = {};
};
/// With `--propose`, `--over` without `--random` gives no tries: it describes the parameters.
/// `usage`; random tries without a seed get a random one. Prints a note if there are fewer random
/// tries than requested.
Result<GivenTries> given_tries(Services& services, const Globals& globals, const Options& options);

/// `--workers`. `usage`.
Result<std::optional<std::size_t>> given_workers(const Options& options);

/// Submits workers until `wanted` are active; by default as many as there are tries left and GPUs
/// in the cluster, at most 16, and lets workers add others (sweeps/growth.h). `options`: of a try.
/// `before`: the board read before tries were added or repeated; workers that had no try left by
/// then do not count, as they are about to end; null: a new sweep. Prints a note. An error only if
/// none could be submitted.
Result<void> start_workers(Invocation& invocation, Store& store, const sweeps::Sweep& sweep,
                           const RunOptions& options, std::optional<std::size_t> wanted,
                           const sweeps::Board* before = nullptr);

/// Takes the workers that still wait for GPUs out of the queue.
void withdraw_waiting(Services& services, Store& store, const std::vector<RunStatus>& workers);

} // namespace gpuq::cli
