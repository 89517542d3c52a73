// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// GPUQ_READONLY is set: for scripts and agents that may look at everything and change nothing.
bool is_read_only(Services& services);

/// Refuses a command that starts, ends or changes anything: `denied`. An invalid command line is
/// not its concern.
Result<void> check_read_only(const Verb& verb, const std::vector<std::string>& arguments);

} // namespace gpuq::cli
