// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <functional>

namespace gpuq::remote {

/// Runs `work` in a thread that nobody joins, and that receives no signals: they are for the main
/// thread. `io`.
Result<void> start_thread(std::function<void()> work);

} // namespace gpuq::remote
