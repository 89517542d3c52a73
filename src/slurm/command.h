// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace gpuq::slurm {

struct CommandAnswer {
    int status = 0; ///< 128+N for signal N
    std::string out;
    std::string err;
};

/// Runs a Slurm command, found in PATH, until it ends; no shell, no input, and no variables of an
/// enclosing job in its environment, in which `variables` (NAME=VALUE) take precedence. `not_found`
/// if it can't be executed; `unreachable` if it exceeds the limit, after it and its children are
/// killed. With `enough`, it is killed as soon as that returns true for the output so far.
Result<CommandAnswer> run_command(std::vector<std::string> arguments,
                                  std::chrono::milliseconds limit,
                                  const std::function<bool(const CommandAnswer&)>& enough = {},
                                  const std::vector<std::string>& variables = {});

} // namespace gpuq::slurm
