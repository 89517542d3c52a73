// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/status.h"

#include <chrono>
#include <optional>

namespace gpuq {

/// How long the run has had its GPUs, over all its links; nothing before it has started or if that
/// is unknown.
std::optional<std::chrono::seconds> time_used(const RunStatus& status, Time now);

} // namespace gpuq
