// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"

namespace gpuq::supervisor {

/// `gpuq-supervisor helper`, executed by the supervisor (Helper::execute): performs the work that
/// is described on its stdin and writes the result to k_helper_answer. Returns the exit status.
int help(Services& services, Options options);

} // namespace gpuq::supervisor
