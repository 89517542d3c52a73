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

/// Runs one of Slurm's programs, found in PATH, to its end; no shell, no input, nothing of an
/// enclosing job in its environment, where `variables` (NAME=VALUE) win. `not_found` when there is
/// none, `unreachable` past the limit, when it was killed with all it had started. With `enough`,
/// it is killed as soon as that is true of what it has printed.
Result<CommandAnswer> run_command(std::vector<std::string> words, std::chrono::milliseconds limit,
                                  const std::function<bool(const CommandAnswer&)>& enough = {},
                                  const std::vector<std::string>& variables = {});

} // namespace gpuq::slurm
