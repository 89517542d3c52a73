// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/run.h"
#include "runs/plan.h"

#include <functional>
#include <string>

/// The context of this process: its terminal, user and current directory.
namespace gpuq::cli {

/// Whether stdin, stdout or stderr is a terminal.
bool on_a_terminal();

/// The kind of stdin that the program gets: none if it is closed or /dev/null.
Input kind_of_stdin();

/// The calling user's name from the password database; the user id if it has none.
std::string user_name();
std::string host_name();

/// The limits of this process that are passed on to a run.
SoftLimits soft_limits();

/// Makes `path`, which is absolute, the current directory, and sets PWD, for this process and the
/// programs that it starts. Must be called before other threads are started. `missing`; `denied`
/// with the reason.
Result<void> enter_directory(const std::string& path);
/// The same for the value of -D, which may be relative; nothing without one.
Result<void> enter_given_directory(Services& services, const std::optional<std::string>& given);

/// SiteContext::same_on_nodes for a run in `work_dir`: the nodes share it, the home and the state
/// directory. `services` must outlive the result.
std::function<bool(const std::string&)> same_on_nodes(Services& services,
                                                      const std::string& work_dir);

/// Refuses a program without a slash that both PATH and the working directory have, if another user
/// could have placed the latter: gpuq prefers it, and would execute the other user's program in a
/// directory such as /tmp. `denied`.
Result<void> check_origin(const std::string& program, const SiteContext& here);

/// The input of a plan, from this process and the configuration. Without nodes.
Result<SiteContext> site_context(Services& services);

} // namespace gpuq::cli
