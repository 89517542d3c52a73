// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "core/run.h"
#include "runs/plan.h"

#include <functional>
#include <string>

/// What this process stands in: its terminal, its user, its folder.
namespace gpuq::cli {

/// A person is there: one of stdin, stdout and stderr is a terminal.
bool on_a_terminal();

/// What stdin is for the program: a closed one and /dev/null are none.
Input kind_of_stdin();

/// The name of the calling user, from the password database; the number when it has none.
std::string user_name();
std::string host_name();

/// Those of this process that go along with a run.
SoftLimits soft_limits();

/// Surroundings::same_on_nodes of a run in `work_dir`: the nodes share it, the home and the state
/// directory. `doors` must outlive it.
std::function<bool(const std::string&)> same_on_nodes(Doors& doors, const std::string& work_dir);

/// What a plan looks at, from this process and the configuration. Without nodes.
Result<Surroundings> surroundings(Doors& doors);

} // namespace gpuq::cli
