// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/top_picture.h"
#include "telemetry/sample.h"
#include "tui/base/picture.h"

#include <optional>

/// The GPUs of `gpuq top`. Pure.
namespace gpuq::cli {

/// The use of a GPU, and of its memory, 0 to 1; nothing if unknown.
std::optional<double> busy_share(const GpuSample& gpu);
std::optional<double> memory_share(const GpuSample& gpu);

/// GPUs held by other users; nothing if unknown.
std::optional<int> of_others(const PoolUse& use);

/// Sets the GPUs of a picture and their holders.
void add_gpus(tui::Picture& picture, const TopFound& found, Time now);

} // namespace gpuq::cli
