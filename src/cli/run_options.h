// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/options.h"
#include "core/result.h"
#include "runs/asked_for.h"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpuq::cli {

/// The rows of `gpuq run`: help, completion and man gpuq-run are made of them.
std::span<const Option> run_option_table();
/// Those of `gpuq shell`: the same, which is always on a terminal.
std::span<const Option> shell_option_table();
/// Those of `gpuq rehearse`: what makes the run what it is, and how long to try.
std::span<const Option> rehearse_option_table();

/// What `gpuq run` was told, typed, still without defaults.
struct RunOptions {
    AskedFor asked;                    ///< `after` is not filled in
    std::optional<std::string> after;  ///< --after: a job id, a name or `last`
    std::optional<std::string> keytab; ///< a path as typed
    bool detach = false;
    bool no_stdin = false;
    bool dry_run = false;
    bool pty = false;
    std::optional<std::chrono::seconds> max_wait; ///< of the client, not of the run
};

/// Gives the options and operands of `gpuq run` their types. `usage` names the option, what is
/// wrong with its value and how to write it.
Result<RunOptions> run_options(const Options& options, const std::vector<std::string>& program);

} // namespace gpuq::cli
