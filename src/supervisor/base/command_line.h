// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/base/context.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// The task of a gpuq-supervisor process.
enum class Task { run, relay, guard, connect, forward, notice, keep, helper };

struct CommandLine {
    Task task = Task::run;
    Options options;
    Notice notice = Notice::none;          ///< for Task::notice
    std::vector<std::string> destinations; ///< for Task::forward: HOST:PORT
};

/// Looks up an environment variable; nullopt if it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;

/// Parses `run|relay|guard|connect|keep|helper STATE_DIR KEY LINK [--first]`, `forward STATE_DIR
/// KEY LINK HOST:PORT...` or `notice STATE_DIR KEY LINK auto|USR1|USR2|TERM`. Job and node come
/// from Slurm's variables. `usage` for anything else.
Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments,
                                       const Variables& variables, const std::string& host);

} // namespace gpuq::supervisor
