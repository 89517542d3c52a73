// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/ids.h"
#include "core/run.h"
#include "runs/credentials.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq {

/// The options of a run of several links (man gpuq-chain).
struct ChainParameters {
    std::optional<std::chrono::seconds> link;
    std::optional<std::string> checkpoint; ///< a glob
    std::vector<std::string> resume_args;
    std::vector<std::string> valid;
    std::optional<Notice> notice;
    bool from_scratch = false;
    std::optional<int> max_links;
    std::optional<std::chrono::minutes> gpu_time;
    std::optional<Time> until;
    std::optional<WhenShort> when_short; ///< how to handle a link whose ticket does not last

    /// True if an option that only a chain has was given: the run is then a chain even if one link
    /// suffices.
    bool are_given() const
    {
        return link || checkpoint || !resume_args.empty() || !valid.empty() || notice ||
               from_scratch || max_links || gpu_time || until;
    }
};

/// The options that the user typed, without any defaults.
struct RunParameters {
    std::vector<std::string> program; ///< as typed
    /// Parts of its words that are replaced before it starts: `{lr}` in a sweep.
    std::vector<std::string> placeholders;
    std::optional<std::chrono::minutes> walltime;
    std::optional<GpuRequest> gpus;
    std::optional<int> cpus;
    std::optional<std::uint64_t> memory_mib;
    std::optional<int> nodes;
    std::optional<int> tasks_per_node;
    std::optional<int> gpus_per_task;
    std::optional<std::string> name;
    std::optional<std::string> queue;
    std::optional<std::string> account;
    std::optional<std::string> qos;
    std::optional<JobId> after; ///< the caller resolves `--after RUN` to its job
    Input input = Input::none;
    std::optional<Pty> pty;
    /// `--env NAME=VALUE`, or `--env NAME` for its value in the current environment.
    std::vector<std::pair<std::string, std::optional<std::string>>> env;
    std::vector<std::string> sources; ///< as typed, as are venv and container
    std::vector<std::string> modules;
    std::optional<std::string> conda;
    std::optional<std::string> venv;
    std::optional<std::string> container;
    std::optional<std::string> slurm_options;
    ChainParameters chain;
};

} // namespace gpuq
