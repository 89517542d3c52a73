// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/supervise.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// What gpuq-supervisor was started for.
enum class Task { run, relay, guard, connect, forward, notice, keep };

struct CommandLine {
    Task task = Task::run;
    Options options;
    Notice notice = Notice::none;          ///< of Task::notice
    std::vector<std::string> destinations; ///< of Task::forward: HOST:PORT
};

/// A variable of the environment, or nothing.
using Variables = std::function<std::optional<std::string>(const char* name)>;

/// `run|relay|guard|connect|keep STATE_DIR KEY LINK [--first]`,
/// `forward STATE_DIR KEY LINK HOST:PORT...` or
/// `notice STATE_DIR KEY LINK auto|USR1|USR2|TERM`; job and node are in Slurm's variables.
/// `usage` for anything else.
Result<CommandLine> parse_command_line(const std::vector<std::string>& words,
                                       const Variables& variables, const std::string& host);

} // namespace gpuq::supervisor
