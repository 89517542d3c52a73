// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/config.h"
#include "cli/base/options.h"
#include "core/result.h"
#include "core/run.h"
#include "runs/run_parameters.h"

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpuq::cli {

struct UnusedRules; // cli/policy_ops/in_force.h

/// The options of `gpuq run`, from which help, completion and man gpuq-run are made.
std::span<const Option> run_option_table();
/// The options of `gpuq shell`: those of `gpuq run` that apply to an interactive shell.
std::span<const Option> shell_option_table();
/// The options of `gpuq notebook`: those of `gpuq shell`, and its own.
std::span<const Option> notebook_option_table();
/// The options of `gpuq rehearse`: those that describe the run, and the time to spend.
std::span<const Option> rehearse_option_table();
/// The options of `gpuq again`: those of `gpuq run`, and `--program`.
std::span<const Option> again_option_table();
/// The options of `gpuq sweep`: those of `gpuq run` that describe a try, and its own.
std::span<const Option> sweep_option_table();

/// The options of `gpuq run` with their types, without defaults.
struct RunOptions {
    RunParameters parameters;          ///< `after` is not set
    std::optional<std::string> after;  ///< --after: a job id, a name or `last`
    std::optional<std::string> keytab; ///< path as typed
    bool detach = false;
    /// With `detach`: the user waits for its start, so it is started at once if GPUs are free.
    bool awaited = false;
    bool no_stdin = false;
    bool dry_run = false;
    bool pty = false;
    /// --snapshot, --no-snapshot; unset: as configured.
    std::optional<SnapshotPolicy> snapshot;
    /// The snapshot of an earlier run, for its repetition (snapshots/manifest.h).
    std::optional<std::string> earlier_snapshot;
    std::optional<std::chrono::seconds> max_wait; ///< for the client, not for the run
    /// Variables in parameters.env whose values are recorded, not given: never printed.
    std::vector<std::string> recorded_env;
    /// Set: the run works on a sweep instead of running the program itself.
    std::optional<SweepWorker> worker;
    /// Called with the run before it is submitted, when it has its key: may change the program, and
    /// writes files that it needs. `rules`: those of the policy.
    std::function<Result<void>(Run&, const UnusedRules& rules)> prepare = {};
};

/// Converts the options and operands of `gpuq run` to their types. `usage` names the option, the
/// error in its value and the correct form.
Result<RunOptions> run_options(const Options& options, const std::vector<std::string>& program);

/// Checks that one terminal suffices for the run; `usage` as in run_options(), which does this as
/// well.
Result<void> check_terminal(const RunOptions& options);

} // namespace gpuq::cli
